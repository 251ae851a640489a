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
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"berth.dev/berth/pkg/evictor"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/tree"
)

// Name of the plugin in configurations.
const Name = "Coscheduling"

// Plugin is the Coscheduling plugin of one profile. What is known of gangs is shared by all profiles of a process.
type Plugin struct {
	framework framework.Framework
	shared    *coordinator
	evictor   *evictor.Profile
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
	return &Plugin{framework: profile, shared: shared,
		evictor: evictor.NewProfile(shared.evictor, profile, shared.planner, settings.delay)}, nil
}

// Name returns the plugin's name.
func (*Plugin) Name() string { return Name }

// Gang returns the gang that the pod is a member of in the eyes of this plugin, and how many members have to start
// together, 0 if that is not known. A pod that means to be in a gang but says so wrongly is in none.
func (p *Plugin) Gang(pod *v1.Pod) (id gang.ID, minimum int) {
	id = p.shared.members.ID(pod)
	if v, known := p.shared.ledger.View(id); known {
		minimum = v.Minimum.Total
	}
	return id, minimum
}

// Topology says within which levels the members of the pod's gang must stay together, and should; its zero value for a
// pod that is in no gang.
func (p *Plugin) Topology(pod *v1.Pod) gangview.Topology {
	id := p.shared.members.ID(pod)
	if id == (gang.ID{}) {
		return gangview.Topology{}
	}
	levels, err := p.shared.planner.Topology(id, pod)
	if err != nil {
		return gangview.Topology{} // its own cycle says why
	}
	return levels
}

// Groups says what the groups within the pod's gang need, nil if it has none.
func (p *Plugin) Groups(pod *v1.Pod) *tree.Group {
	v, _ := p.shared.ledger.View(p.shared.members.ID(pod))
	return v.Minimum.Tree
}

// SignPod refuses members of gangs, whose node depends on their siblings, and adds to other pods what holds look at.
func (p *Plugin) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if p.shared.members.Has(pod) {
		return nil, fwk.NewStatus(fwk.Unschedulable, "the node of a gang member depends on its siblings")
	}
	looked := []any{corev1helpers.PodPriority(pod), p.shared.allowsBackfill(pod)}
	if p.shared.holds.Gate.Any() {
		looked = append(looked, p.shared.holds.Gate.Forecasts.Signature(pod)...)
	}
	return []fwk.SignFragment{{Key: Name + ".Kept", Value: looked}}, nil
}

// EventsToRegister names what makes a rejected pod schedulable alone: that it is no member any more, or has no value
// any more that cannot be read; and, of a gang that has started, that its group may have room in a domain now, or has
// begun. What can make a gang fit wakes it in the order of the gangs and a few at a time, not all at once and under the
// queue's lock, as hints would; see loop.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		{
			Event: fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.UpdatePodLabel},
			QueueingHintFn: func(_ klog.Logger, _ *v1.Pod, _, obj any) (fwk.QueueingHint, error) {
				if pod, ok := obj.(*v1.Pod); ok && !p.shared.members.Has(pod) {
					return fwk.Queue, nil
				}
				return fwk.QueueSkip, nil
			},
		},
		{
			// Annotations have no action type of their own: their changes arrive as the general update.
			Event: fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.Update},
			QueueingHintFn: func(_ klog.Logger, _ *v1.Pod, old, obj any) (fwk.QueueingHint, error) {
				before, after, err := util.As[*v1.Pod](old, obj)
				if err != nil {
					return fwk.Queue, err
				}
				if p.shared.misstated(before) != nil && p.shared.misstated(after) == nil {
					return fwk.Queue, nil
				}
				return fwk.QueueSkip, nil
			},
		},
		{
			Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeAllocatable |
				fwk.UpdateNodeLabel | fwk.UpdateNodeTaint},
			QueueingHintFn: func(_ klog.Logger, pod *v1.Pod, _, _ any) (fwk.QueueingHint, error) { return p.joins(pod), nil },
		},
		{
			Event:          fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete},
			QueueingHintFn: func(_ klog.Logger, pod *v1.Pod, _, _ any) (fwk.QueueingHint, error) { return p.joins(pod), nil },
		},
		{
			Event:          fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Add},
			QueueingHintFn: p.siblingCame,
		},
	}, nil
}

// siblingCame has a pod tried again for another of its gang.
func (p *Plugin) siblingCame(_ klog.Logger, pod *v1.Pod, _, obj any) (fwk.QueueingHint, error) {
	if came, ok := obj.(*v1.Pod); !ok || p.shared.members.ID(came) != p.shared.members.ID(pod) {
		return fwk.QueueSkip, nil
	}
	return p.joins(pod), nil
}

// joins has a pod tried again that joins a gang which has started.
func (p *Plugin) joins(pod *v1.Pod) fwk.QueueingHint {
	if p.shared.ledger.Cycles.Standing(gang.UID(pod.UID)).Alone {
		return fwk.Queue
	}
	return fwk.QueueSkip
}
