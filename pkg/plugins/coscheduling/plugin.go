// Package coscheduling places the pods of a gang together or not at all.
//
// The first pod of a gang leads: it alone enters the scheduling queue, and its cycle tries the whole gang on a copy of
// the cluster with the profile's own filters and scores. A gang that fits gets one plan, which its other members follow
// by looking at one node each; all are bound together as soon as the last of them has reserved its node. A gang that
// does not fit holds nothing, blocks no other, and says in one sentence with numbers what it lacks.
package coscheduling

import (
	"context"
	"fmt"
	"maps"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/preempt"
	"berth.dev/berth/pkg/process"
)

// Name of the plugin in configurations.
const Name = "Coscheduling"

// Plugin is the Coscheduling plugin of one profile. What is known of gangs is shared by all profiles of a process. It
// has the extension points of a scheduling cycle; those of the queue, and what others may ask, depend on no profile.
type Plugin struct {
	queue
	answers
	framework framework.Framework
	shared    *coordinator
	evictor   *preempt.Profile
	// complete is done once the profile has all its plugins. othersPermit is set if other plugins of it have a say in
	// Permit.
	complete     sync.Once
	othersPermit bool
}

var (
	_ fwk.QueueSortPlugin   = &Plugin{}
	_ fwk.PreEnqueuePlugin  = &Plugin{}
	_ fwk.PreFilterPlugin   = &Plugin{}
	_ fwk.FilterPlugin      = &Plugin{}
	_ fwk.PostFilterPlugin  = &Plugin{}
	_ fwk.ReservePlugin     = &Plugin{}
	_ fwk.PermitPlugin      = &Plugin{}
	_ fwk.PreBindPlugin     = &Plugin{}
	_ fwk.SignPlugin        = &Plugin{}
	_ fwk.EnqueueExtensions = &Plugin{}
	_ process.NodeRuler     = &Plugin{}
)

// New makes the plugin for one profile.
func New(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	settings, err := settingsFrom(obj, handle.ProfileName())
	if err != nil {
		return nil, err
	}
	profile, ok := handle.(framework.Framework)
	if !ok {
		return nil, fmt.Errorf("making %s: the handle %T cannot run the profile's plugins", Name, handle)
	}
	registerMetrics()
	shared, err := coordinatorOf(ctx, profile, settings)
	if err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	return &Plugin{queue: queue{shared}, answers: answers{shared}, framework: profile, shared: shared,
		evictor: preempt.NewProfile(shared.evictor, profile, shared.planner)}, nil
}

// Name returns the plugin's name.
func (*Plugin) Name() string { return Name }

// SignPod refuses members of gangs, whose node depends on their siblings, and adds to other pods what holds look at.
func (p *Plugin) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if p.shared.members.Has(pod) {
		return nil, fwk.NewStatus(fwk.Unschedulable, "the node of a gang member depends on its siblings")
	}
	gate := &p.shared.holds.Gate
	looked := []any{corev1helpers.PodPriority(pod), gate.AllowsBackfill(pod)}
	if gate.Any() {
		looked = append(looked, gate.RunTime(pod))
	}
	return []fwk.SignFragment{{Key: Name + ".Kept", Value: looked}}, nil
}

// EventsToRegister names what makes a rejected pod schedulable alone: that it is no member any more, or has no value
// any more that cannot be read; and, of a gang that has started, that it says something else now, or that its group may
// have room in a domain or has begun. What can make a gang fit wakes it in the order of the gangs and a few at a time,
// not all at once and under the queue's lock, as hints would; see loop.
func (q queue) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	misstated := q.shared.settings.classes.misstated
	return []fwk.ClusterEventWithHint{
		process.On(fwk.TargetPod, fwk.UpdatePodLabel, func(_, _, now *v1.Pod) bool { return !q.shared.members.Has(now) }),
		process.On(fwk.TargetPod, process.OwnChange, func(_, before, now *v1.Pod) bool {
			return misstated(before) != nil && misstated(now) == nil ||
				!maps.Equal(before.Annotations, now.Annotations) && q.joins(now) // where it may go, perhaps
		}),
		process.On(fwk.Node, fwk.Add|fwk.UpdateNodeAllocatable|fwk.UpdateNodeLabel|fwk.UpdateNodeTaint,
			func(pod *v1.Pod, _, _ *v1.Node) bool { return q.joins(pod) }),
		process.On(fwk.AssignedPod, fwk.Delete, func(pod, _, _ *v1.Pod) bool { return q.joins(pod) }),
		process.On(fwk.AssignedPod, fwk.Add, q.siblingCame),
	}, nil
}

// siblingCame has a pod tried again for another of its gang, or for any if it has to be near some. It is asked of all
// pods that wait whenever one is bound; whether a pod joins a gang is quickly told, the names of two gangs are not.
func (q queue) siblingCame(pod, _, came *v1.Pod) bool {
	if !q.joins(pod) {
		return false
	}
	a := pod.Spec.Affinity
	return a != nil && a.PodAffinity != nil || q.shared.members.ID(came) == q.shared.members.ID(pod)
}

// joins reports whether the pod joins a gang that has started.
func (q queue) joins(pod *v1.Pod) bool {
	return q.shared.ledger.Cycles.Standing(gang.UID(pod.UID)).Alone
}
