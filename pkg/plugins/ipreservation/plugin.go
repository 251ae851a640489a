// Package ipreservation is the plugin that gives pods fixed addresses and puts them where these are routable.
//
// A pod that names an IPPool, or that an IPReservation is kept for, runs only on nodes in a domain where an address is
// free for it. Reserve promises an address in memory, and PreBind writes it: first as an IPReservation, whose name is
// derived from the address so that no address is given twice, then into an annotation of the pod for the CNI plugin. The
// scheduler that leads deletes reservations as their release policies say.
package ipreservation

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"berth.dev/berth/pkg/address"
	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/informers"
	"berth.dev/berth/pkg/kubeview"
)

// Name of the plugin in configurations.
const Name = "IPReservation"

// Plugin is the IPReservation plugin of one profile.
type Plugin struct {
	book   *book
	handle fwk.Handle
	args   *config.IPReservationArgs
}

var (
	_ fwk.PreFilterPlugin     = &Plugin{}
	_ fwk.PreFilterExtensions = &Plugin{}
	_ fwk.FilterPlugin        = &Plugin{}
	_ fwk.ReservePlugin       = &Plugin{}
	_ fwk.PreBindPlugin       = &Plugin{}
	_ fwk.SignPlugin          = &Plugin{}
	_ fwk.EnqueueExtensions   = &Plugin{}
)

// New makes the plugin for one profile.
func New(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	args, ok := obj.(*config.IPReservationArgs)
	if !ok {
		return nil, fmt.Errorf("reading args of profile %s: want IPReservationArgs, got %T", handle.ProfileName(), obj)
	}
	path := field.NewPath("profiles").Key(handle.ProfileName()).Child("pluginConfig").Key(Name).Child("args")
	if err := config.ValidateIPReservationArgs(path, args); err != nil {
		return nil, err
	}
	b, err := informers.Shared(handle.SharedInformerFactory(), func() (*book, error) { return newBook(ctx, handle) })
	if err != nil {
		return nil, err
	}
	return &Plugin{book: b, handle: handle, args: args}, nil
}

// Name returns the plugin's name.
func (*Plugin) Name() string { return Name }

// SignPod refuses pods that get an address: what is left for one depends on all others. The rest are alike.
func (p *Plugin) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	ask, bad := askOf(pod)
	if bad != nil || p.book.concerned(ask) {
		return nil, fwk.NewStatus(fwk.Unschedulable, "the addresses that are left depend on other pods")
	}
	return nil, nil
}

// EventsToRegister names what can make a rejected pod schedulable: a node in another domain, and a change of the pod's
// annotation. Pools and reservations are not among them: an event of a CRD that is not installed would keep the scheduler
// from starting. The loop of the book wakes the pods that ask for addresses.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeLabel}, QueueingHintFn: p.afterNodeChange},
		// Annotations have no action type of their own: their changes arrive as the general update.
		{Event: fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.Update}, QueueingHintFn: afterOwnChange},
	}, nil
}

// afterNodeChange queues a pod when a node may take it that could not before.
func (p *Plugin) afterNodeChange(_ klog.Logger, pod *v1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	before, after, err := util.As[*v1.Node](oldObj, newObj)
	if err != nil {
		return fwk.Queue, err
	}
	ask, bad := askOf(pod)
	if bad != nil {
		//nolint:nilerr // a value that cannot be read is no failure of the hint: no node helps such a pod
		return fwk.QueueSkip, nil
	}
	plan, reason := p.book.ledger.Plan(ask)
	if reason != "" {
		return fwk.QueueSkip, nil
	}
	if reason, _ := plan.Refuses(after.Labels); reason != "" {
		return fwk.QueueSkip, nil
	}
	if before != nil {
		if reason, _ := plan.Refuses(before.Labels); reason == "" {
			return fwk.QueueSkip, nil
		}
	}
	return fwk.Queue, nil
}

// afterOwnChange queues a pod when it asks for another pool.
func afterOwnChange(_ klog.Logger, _ *v1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	before, after, err := util.As[*v1.Pod](oldObj, newObj)
	if err != nil {
		return fwk.Queue, err
	}
	if before.Annotations[kubeview.IPPoolKey] == after.Annotations[kubeview.IPPoolKey] {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}

// askOf reads what the pod wants.
func askOf(pod *v1.Pod) (*address.Ask, *kubeview.BadValue) {
	pool, bad := kubeview.PodIPPool(pod)
	if bad != nil {
		return nil, bad
	}
	return &address.Ask{Pod: string(pod.UID), Namespace: pod.Namespace, Identities: kubeview.PodIdentities(pod), Pool: pool}, nil
}
