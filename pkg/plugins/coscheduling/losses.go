package coscheduling

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/podgroup"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/pkg/workview"
)

// newLoss returns what says which work evictions lose.
func (c *coordinator) newLoss(gpus gpuRequests) *workview.Loss {
	return &workview.Loss{Limits: c.settings.limits, MilliGPUs: gpus.milli, GangOf: c.members.ID,
		Members: func(id gang.ID) (metav1.Object, []*v1.Pod) {
			var members []*v1.Pod
			for _, ref := range c.ledger.Members(id) {
				if member := c.members.Pod(ref); member != nil {
					members = append(members, member)
				}
			}
			return c.members.Object(id), members
		}}
}

// Loss says what the eviction of a pod loses.
func (p *Plugin) Loss() *workview.Loss { return p.shared.evictor.Sources.Loss }

// doubtPod tells a running pod that has told of a checkpoint which does not count.
func (f *feed) doubtPod(old, pod *v1.Pod) {
	if pod.Spec.NodeName == "" || !toldAnother(old, pod) || !f.c.told.leader.Leading() {
		return
	}
	if wrong := workview.Doubtful(pod, time.Now()); wrong != nil {
		f.recorder.Eventf(pod, nil, v1.EventTypeWarning, "CheckpointIgnored", "Reading", "%s: %s", wrong.Error(),
			wrong.Effect)
	}
}

// doubtGroup does the same for a PodGroup.
func (f *feed) doubtGroup(old, pg *schedulingv1alpha1.PodGroup) {
	if !toldAnother(old, pg) || !f.c.told.leader.Leading() {
		return
	}
	if wrong := workview.DoubtfulGroup(pg, time.Now()); wrong != nil {
		f.recorder.Eventf(podgroup.ReferenceTo(pg), nil, v1.EventTypeWarning, "CheckpointIgnored", "Reading", "%s: %s",
			wrong.Error(), wrong.Effect)
	}
}

func toldAnother(old, obj metav1.Object) bool {
	return old.GetAnnotations()[wellknown.LastCheckpointKey] != obj.GetAnnotations()[wellknown.LastCheckpointKey]
}
