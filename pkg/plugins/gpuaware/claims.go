package gpuaware

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/kubeview"
)

// claims are the devices that have to be allocated for the pod in this cycle. Upstream's allocator chooses them, so that
// the plugin chooses the node and not the device.
type claims struct {
	pod *kubeview.PodClaims
	// state is which devices are allocated; nil without GPUs that can be claimed.
	state *kubeview.ClaimState
}

// readClaims finds the devices that have to be allocated for the pod: for claims of its own, and where a device class
// stands in for an extended resource that it asks for.
func (p *Plugin) readClaims(ctx context.Context, pod *v1.Pod, s *podState) error {
	found := p.cluster.claims.Pod(pod)
	if found == nil {
		return nil
	}
	state, err := p.cluster.claims.Now(ctx)
	if err != nil {
		return err
	}
	asked := s.request.WantsGPU()
	if !asked {
		claimed, known := p.cluster.claims.Demand(ctx, found)
		if known && !claimed.WantsGPU() {
			return nil // devices of other kinds
		}
		s.request.Count, s.request.Milli, s.request.Slices = claimed.Count, claimed.Milli, claimed.Slices
	}
	if state == nil && !asked {
		return nil
	}
	s.claims = &claims{pod: found, state: state}
	return nil
}

// serves reports whether claims, not a device plugin, serve the pod on a node.
func (c *claims) serves(info fwk.NodeInfo) bool { return c != nil && c.pod.Serves(info) }

// fit reports whether the node can serve the pod. What can be allocated is for the allocator to say: it is asked here only
// to name the shortage, and the node is refused without its word only where the devices are not such as the pod's
// annotations want them, which the allocator does not know.
func (c *claims) fit(ctx context.Context, info fwk.NodeInfo, r *gpu.Request) gpu.Reason {
	if c.state == nil {
		return gpu.Reason{}
	}
	outcome, err := c.state.Allocate(ctx, info, c.pod)
	if err != nil {
		klog.FromContext(ctx).V(4).Info("Devices cannot be allocated", "node", klog.KObj(info.Node()), "err", err)
		return gpu.Reason{} // the allocator says so itself
	}
	inventory := c.state.Devices(info, c.pod)
	if outcome.OK {
		return gpu.FitGranted(inventory, r, outcome.Granted)
	}
	if c.pod.Reuses() {
		return gpu.Reason{}
	}
	return gpu.Fit(inventory, r)
}

// inventory is what the node has for the pod, without the GPUs that are measured to be faulty, and writes down which of it
// the allocator would give.
func (c *claims) inventory(ctx context.Context, info fwk.NodeInfo, v *view, measured live, at *gpu.Placement) *gpu.Inventory {
	if c.state == nil {
		return v.inventory
	}
	if outcome, err := c.state.Allocate(ctx, info, c.pod); err == nil && outcome.OK {
		at.Allocated, at.Granted = true, outcome.Granted
	}
	return measured.healthy(c.state.Node(v.node), c.state.Devices(info, c.pod))
}
