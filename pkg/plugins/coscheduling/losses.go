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
		Members: func(id gang.ID) (metav1.Object, []*v1.Pod) { return c.members.Object(id), c.members.PodsOf(id) }}
}

// doubtPod tells a running pod that has told of a checkpoint which does not count.
func (f *feed) doubtPod(old, pod *v1.Pod) {
	if pod.Spec.NodeName != "" {
		f.c.told.doubt(old, pod, pod, func() *wellknown.BadValue { return workview.Doubtful(pod, time.Now()) })
	}
}

// doubtGroup does the same for a PodGroup.
func (f *feed) doubtGroup(old, pg *schedulingv1alpha1.PodGroup) {
	f.c.told.doubt(old, pg, podgroup.ReferenceTo(pg),
		func() *wellknown.BadValue { return workview.DoubtfulGroup(pg, time.Now()) })
}
