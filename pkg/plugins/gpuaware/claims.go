package gpuaware

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/claimview"
	"berth.dev/berth/pkg/gpu"
)

// claims are the devices that have to be allocated for the pod in this cycle. Upstream's allocator chooses them, so
// that the plugin chooses the node and not the device.
type claims struct {
	pod *claimview.Pod
	// asked are the extended resources of GPUs that the pod asks for; empty where it asks for GPUs by claims of its
	// own, or by a resource that is named after a class.
	asked []v1.ResourceName
	// state is which devices are allocated; nil without GPUs that can be claimed.
	state *claimview.State
}

// readClaims finds the devices that have to be allocated for the pod: for claims of its own, and where a device class
// stands in for an extended resource that it asks for.
func (p *Plugin) readClaims(ctx context.Context, pod *v1.Pod, s *podState) error {
	found := p.cluster.claims.Pod(pod)
	if found == nil || s.request.Shared {
		return nil
	}
	state, err := p.cluster.claims.Now(ctx)
	if err != nil {
		return err
	}
	var asked []v1.ResourceName
	if s.request.Resource != "" {
		asked = append(asked, v1.ResourceName(s.request.Resource))
	}
	for i := range s.request.Slices {
		asked = append(asked, v1.ResourceName(s.request.Slices[i].Resource))
	}
	if len(asked) == 0 {
		claimed, known := p.cluster.claims.Demand(ctx, found)
		if known && !claimed.WantsGPU() {
			return nil // devices of other kinds
		}
		// What is not known may be GPUs: those that a node would give are held against the pod's annotations.
		s.request.Count, s.request.Milli, s.request.Slices = claimed.Count, claimed.Milli, claimed.Slices
	}
	if state == nil && len(asked) == 0 {
		return nil
	}
	s.claims = &claims{pod: found, asked: asked, state: state}
	return nil
}

// serves reports whether claims, not a device plugin, give the pod its GPUs on a node.
func (c *claims) serves(info fwk.NodeInfo) bool {
	return c != nil && (len(c.asked) == 0 || c.pod.Serves(info, c.asked))
}

// fit says why the node cannot serve the pod. What can be allocated is for the allocator to say, which filters nodes
// itself: it is asked here only to make sure of a shortage, so that the shortage can be named, and where the pod's
// annotations want devices of a kind, which the allocator does not know. Without an answer it returns an error.
func (c *claims) fit(ctx context.Context, info fwk.NodeInfo, r *gpu.Request) (gpu.Reason, error) {
	if c.state == nil {
		return gpu.Reason{}, nil
	}
	inventory := c.state.Devices(info, c.pod)
	shortage := gpu.Fit(inventory, r)
	if shortage.Cause == gpu.Fits && !picky(r) {
		return shortage, nil
	}
	outcome, err := c.state.Allocate(ctx, info, c.pod)
	switch {
	case err != nil:
		return gpu.Reason{}, err
	case outcome.OK:
		return gpu.FitGranted(inventory, r, outcome.Granted), nil
	case c.pod.Reuses():
		return gpu.Reason{}, nil
	}
	return shortage, nil
}

// picky reports whether annotations of the pod want devices of a kind.
func picky(r *gpu.Request) bool {
	return len(r.Models) > 0 || r.MinMemMiB > 0 || r.Interconnect == gpu.InterconnectRequired
}

// unanswered is the status of a node for which the allocator does not say in time, or not at all, what it would give.
// It says so itself; only where the pod's annotations want devices of a kind, the pod must not go where others may be
// given.
func (c *claims) unanswered(ctx context.Context, info fwk.NodeInfo, r *gpu.Request, err error) *fwk.Status {
	klog.FromContext(ctx).V(4).Info("Devices cannot be allocated", "node", klog.KObj(info.Node()), "err", err)
	if picky(r) {
		return fwk.NewStatus(fwk.Unschedulable, "node(s) whose allocator does not say which GPUs it would give")
	}
	return nil
}

// inventory is what the node has for the pod, without the GPUs that are measured to be faulty, and writes down which of
// it the allocator would give where that makes a difference.
func (c *claims) inventory(ctx context.Context, info fwk.NodeInfo, v *view, s *podState,
	at *gpu.Placement) *gpu.Inventory {
	if c.state == nil {
		return v.inventory
	}
	node := c.state.Node(v.node)
	inventory := c.state.Devices(info, c.pod)
	healthy := s.live.healthy(inventory, node)
	if s.request.Count > 0 && healthy == inventory && !c.pod.Varies() && c.state.Interchangeable(info.Node().Name) {
		return inventory
	}
	outcome, err := c.state.Allocate(ctx, info, c.pod)
	if err == nil && outcome.OK {
		at.Allocated, at.Granted = true, outcome.Granted
	}
	return healthy
}
