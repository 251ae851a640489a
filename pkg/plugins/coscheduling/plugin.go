// Package coscheduling places the pods of a gang together or not at all.
//
// The first pod of a gang leads: it alone enters the scheduling queue, and its cycle tries the whole gang on a copy of
// the cluster with the profile's own filters and scores. A gang that fits gets one plan, which its other members follow
// by looking at one node each; all are bound together as soon as the last of them holds its seat. A gang that does not
// fit holds nothing, blocks nobody, and says in one sentence with numbers what it lacks.
package coscheduling

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/kubeview"
)

// Name of the plugin in configurations.
const Name = "Coscheduling"

// Plugin is the Coscheduling plugin of one profile. What is known of gangs is shared by all profiles of a process.
type Plugin struct {
	framework framework.Framework
	shared    *coordinator
}

var (
	_ fwk.QueueSortPlugin   = &Plugin{}
	_ fwk.PreEnqueuePlugin  = &Plugin{}
	_ fwk.PreFilterPlugin   = &Plugin{}
	_ fwk.FilterPlugin      = &Plugin{}
	_ fwk.PostFilterPlugin  = &Plugin{}
	_ fwk.ReservePlugin     = &Plugin{}
	_ fwk.PermitPlugin      = &Plugin{}
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
	return &Plugin{framework: profile, shared: shared}, nil
}

// Name returns the plugin's name.
func (*Plugin) Name() string { return Name }

// SignPod refuses members of gangs, whose node depends on their siblings, and adds to other pods what a reservation
// looks at.
func (p *Plugin) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if isMember(pod) {
		return nil, fwk.NewStatus(fwk.Unschedulable, "the node of a gang member depends on its siblings")
	}
	if !p.shared.settings.reserve {
		return nil, nil
	}
	return []fwk.SignFragment{{Key: Name + ".Reservation", Value: []any{corev1helpers.PodPriority(pod), p.shared.mayUseReserved(pod)}}}, nil
}

// EventsToRegister names the rare events that can make a gang fit. Nodes that come or change and pods that leave are
// not among them: they are frequent, and the coordinator wakes blocked gangs for them in order and a few at a time
// instead of all at once.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	resources := []fwk.EventResource{fwk.PersistentVolume, fwk.PersistentVolumeClaim, fwk.StorageClass, fwk.CSINode,
		fwk.ResourceClaim, fwk.ResourceSlice, fwk.DeviceClass}
	events := make([]fwk.ClusterEventWithHint, 0, len(resources))
	for _, r := range resources {
		events = append(events, fwk.ClusterEventWithHint{
			Event:          fwk.ClusterEvent{Resource: r, ActionType: fwk.Add | fwk.Update},
			QueueingHintFn: p.hintLeader,
		})
	}
	return events, nil
}

// hintLeader wakes the leaders of gangs only: the others follow. It runs under the queue's lock.
func (p *Plugin) hintLeader(_ klog.Logger, pod *v1.Pod, _, _ any) (fwk.QueueingHint, error) {
	if p.shared.ledger.Reopen(gang.UID(pod.UID)) {
		return fwk.Queue, nil
	}
	return fwk.QueueSkip, nil
}

// isMember reports whether the pod is, or means to be, a member of a gang of ours. Native groups are left to the core.
func isMember(pod *v1.Pod) bool {
	if pod.Spec.SchedulingGroup != nil {
		return false
	}
	id, _, err := kubeview.GangOf(pod)
	return err != nil || id != gang.ID{}
}
