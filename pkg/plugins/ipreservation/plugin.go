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
	"berth.dev/berth/pkg/process/informers"
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
