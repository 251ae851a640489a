package gpuaware

import (
	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/podview"
)

// seen is the pod as the informer knows it, nil if it is gone.
func (c *shared) seen(pod *v1.Pod) *v1.Pod {
	obj, exists, _ := c.pods.GetByKey(pod.Namespace + "/" + pod.Name)
	if now, ok := obj.(*v1.Pod); ok && exists && now.UID == pod.UID {
		return now
	}
	return nil
}

// keepBound records the devices of a pod again, after Unreserve, if the pod is bound although the answer to the binding
// was lost. found is the pod as the API server returned it, nil if PreBind did not read it. A pod that the informer
// reports as bound later is recorded then.
func (c *shared) keepBound(pod, found *v1.Pod) {
	now := c.seen(pod)
	if now != nil && now.Spec.NodeName == "" && found != nil {
		now = found
	}
	if now != nil && now.Spec.NodeName != "" && !podview.Finished(now) {
		c.followBound(nil, now)
	}
}

// followBound records the grant of a bound pod, so that later edits do not count, and reports edits and refusals in
// events of the pod, once for each replica of the scheduler. before is nil when the pod is seen for the first time.
func (c *shared) followBound(before, pod *v1.Pod) {
	if pod.Spec.NodeName == "" || podview.Finished(pod) {
		return
	}
	edited := before != nil && before.Spec.NodeName != "" && gpuview.GrantEdited(before, pod)
	if _, known := c.ledger.of(pod.UID); !known {
		a, ok := gpuview.Granted(pod)
		if !ok {
			c.warnUnassigned(before, pod)
			return
		}
		c.ledger.adopt(pod.UID, a)
		edited = edited || gpuview.GrantDisputed(pod, a)
	}
	if edited && c.ledger.first(pod.UID, "GrantEdited") {
		edits.Inc()
		c.recorder.Eventf(pod, nil, v1.EventTypeWarning, "GrantEdited", "Reading",
			"annotations that ask for GPUs or name the pod's devices have changed; "+
				"it keeps the devices that it was given")
	}
	if gpuview.RefusedByHAMi(pod) && c.ledger.first(pod.UID, "DevicesRefused") {
		c.recorder.Eventf(pod, nil, v1.EventTypeWarning, "DevicesRefused", "Binding",
			"HAMi's device plugin on node %s did not give the pod its devices; "+
				"they are free again when the kubelet has rejected it",
			pod.Spec.NodeName)
	}
}

// warnUnassigned reports, when a pod comes to its node, that its annotations ask for GPUs that do not count for it.
func (c *shared) warnUnassigned(before, pod *v1.Pod) {
	if before != nil && before.Spec.NodeName != "" {
		return
	}
	if key := c.views.keys.Unassigned(pod); key != "" {
		unassigned.Inc()
		c.recorder.Eventf(pod, nil, v1.EventTypeWarning, "DevicesNotAssigned", "Reading",
			"annotation %s asks for GPUs, but the pod was not put on node %s by this scheduler and has no devices: "+
				"others may be given the GPUs that it claims", key, pod.Spec.NodeName)
	}
}
