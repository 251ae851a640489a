// Package ipreservation is the plugin that gives pods fixed addresses and puts them where these are routable.
//
// A pod that names an IPPool, or that an IPReservation is kept for, runs only on nodes in a domain where an address is
// free for it. Reserve promises an address in memory, and PreBind writes it: first as an IPReservation, whose name is
// derived from the address so that no address is given twice, then into an annotation of the pod for the CNI plugin.
// The scheduler that leads deletes reservations as their release policies say.
package ipreservation

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/process/informers"
	"berth.dev/berth/pkg/wellknown"
)

// Name of the plugin in configurations.
const Name = "IPReservation"

// Plugin is the IPReservation plugin of one profile.
type Plugin struct {
	addresses *addresses
	handle    fwk.Handle
	args      *config.IPReservationArgs
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
	args, err := config.Checked[*config.IPReservationArgs](obj, handle.ProfileName(), Name)
	if err != nil {
		return nil, err
	}
	ad, err := informers.Shared(handle.SharedInformerFactory(), func() (*addresses, error) {
		return newAddresses(ctx, handle)
	})
	if err != nil {
		return nil, err
	}
	return &Plugin{addresses: ad, handle: handle, args: args}, nil
}

// Name returns the plugin's name.
func (*Plugin) Name() string { return Name }

// SignPod refuses pods that get an address: what is left for one depends on all others. The rest are alike.
func (p *Plugin) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if ask, bad := p.addresses.ask(pod); bad != nil || ask != nil {
		return nil, fwk.NewStatus(fwk.Unschedulable, "the addresses that are left depend on other pods")
	}
	return nil, nil
}

// EventsToRegister names what can make a rejected pod schedulable: a node in another domain, and a change of the pod's
// annotation. Pools and reservations are not among them: an event of a CRD that is not installed would keep the
// scheduler from starting. Their changes wake the pods that ask for addresses.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		process.On(fwk.Node, fwk.Add|fwk.UpdateNodeLabel, p.afterNodeChange),
		process.On(fwk.TargetPod, process.OwnChange, afterOwnChange),
	}, nil
}

// afterNodeChange queues a pod when a node comes where it can have an address. Where none is free, the pod is woken
// when one comes free.
func (p *Plugin) afterNodeChange(pod *v1.Pod, before, after *v1.Node) bool {
	ask, bad := p.addresses.ask(pod)
	if bad != nil || ask == nil {
		// No node helps a pod with a bad value; one whose reservation is gone needs no address any more.
		return bad == nil
	}
	plan, refusal := p.addresses.ledger.Plan(ask)
	fits := func(node *v1.Node) bool {
		reason, _ := plan.Refuses(node.Labels)
		return reason == ""
	}
	return refusal == "" && fits(after) && (before == nil || !fits(before))
}

// afterOwnChange queues a pod when it asks for another pool.
func afterOwnChange(_, before, after *v1.Pod) bool {
	return before.Annotations[wellknown.IPPoolKey] != after.Annotations[wellknown.IPPoolKey]
}
