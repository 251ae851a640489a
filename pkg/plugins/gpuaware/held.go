package gpuaware

import (
	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/kubeview"
)

// keepBound takes a pod whose reservation was just given back up again if it is bound all the same: the answer to the
// binding was lost. A pod of which the informer tells later is taken up then.
func (c *cluster) keepBound(pod *v1.Pod) {
	obj, exists, _ := c.fleet.pods.GetByKey(pod.Namespace + "/" + pod.Name)
	if now, ok := obj.(*v1.Pod); ok && exists && now.UID == pod.UID && now.Spec.NodeName != "" && !kubeview.Finished(now) {
		c.placed(now)
		c.holds(nil, now)
	}
}

// holds follows a pod that is bound: what it was granted is taken down before anybody can edit it, and what is edited
// or refused later is said once, on the pod. Before is nil when the pod is seen for the first time.
func (c *cluster) holds(before, pod *v1.Pod) {
	if pod.Spec.NodeName == "" || kubeview.Finished(pod) {
		return
	}
	if _, known := c.ledger.of(pod.UID); !known {
		a, ok := kubeview.Granted(pod)
		if !ok {
			return
		}
		c.ledger.adopt(pod.UID, a)
	}
	if before != nil && before.Spec.NodeName != "" && kubeview.GrantEdited(before, pod) && c.ledger.firstEdit(pod.UID) {
		c.recorder.Eventf(pod, nil, v1.EventTypeWarning, "GrantEdited", "Reading",
			"annotations by which the pod asked for GPUs or was told its devices have changed; "+
				"it keeps the devices that it was given")
	}
	if kubeview.RefusedByHAMi(pod) && c.ledger.firstRefusal(pod.UID) {
		c.recorder.Eventf(pod, nil, v1.EventTypeWarning, "DevicesRefused", "Binding",
			"HAMi's device plugin on node %s did not give the pod its devices; "+
				"they are free again when the kubelet has rejected it",
			pod.Spec.NodeName)
	}
}
