package coscheduling

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

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
func (f *podFeed) doubtPod(old, pod *v1.Pod) {
	if pod.Spec.NodeName != "" && f.c.doubts(old, pod) {
		ignored(f.recorder, pod, workview.Doubtful(pod, time.Now()))
	}
}

// doubtGroup does the same for a PodGroup.
func (f *groupFeed) doubtGroup(old, pg *schedulingv1alpha1.PodGroup) {
	if f.c.doubts(old, pg) {
		ignored(f.recorder, podgroup.ReferenceTo(pg), workview.DoubtfulGroup(pg, time.Now()))
	}
}

// doubts reports whether the object has told of another checkpoint, and this scheduler is the one to look at it.
func (c *coordinator) doubts(old, obj metav1.Object) bool {
	return old.GetAnnotations()[wellknown.LastCheckpointKey] != obj.GetAnnotations()[wellknown.LastCheckpointKey] &&
		c.told.leader.Leading()
}

// ignored tells what is wrong with a checkpoint, if anything is.
func ignored(recorder events.EventRecorder, about runtime.Object, wrong *wellknown.BadValue) {
	if wrong != nil {
		recorder.Eventf(about, nil, v1.EventTypeWarning, "CheckpointIgnored", "Reading", "%s: %s", wrong.Error(), wrong.Effect)
	}
}
