package gpuaware

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/claimview"
)

// claims are the devices that have to be allocated for the pod in this cycle. The plugin DynamicResources chooses the
// devices, this plugin only the node.
type claims struct {
	pod *claimview.Pod
	// asked are the extended resources of GPUs that the pod asks for; empty where it asks for GPUs by claims of its
	// own, or by a resource that is named after a class.
	asked []v1.ResourceName
}

// readClaims finds the devices that have to be allocated for the pod: for claims of its own, and where a device class
// stands in for an extended resource that it asks for.
func (p *Plugin) readClaims(ctx context.Context, pod *v1.Pod, s *podState) {
	found := p.shared.claims.Pod(ctx, pod)
	if found == nil || s.request.Shared {
		return
	}
	var asked []v1.ResourceName
	if s.request.Resource != "" {
		asked = append(asked, v1.ResourceName(s.request.Resource))
	}
	for i := range s.request.Slices {
		asked = append(asked, v1.ResourceName(s.request.Slices[i].Resource))
	}
	if len(asked) == 0 {
		claimed, known := found.Request()
		if known && !claimed.WantsGPU() {
			return // devices of other kinds
		}
		s.request.Count, s.request.Milli, s.request.Slices = claimed.Count, claimed.Milli, claimed.Slices
	}
	s.claims = &claims{pod: found, asked: asked}
}

// serves reports whether claims, not a device plugin, give the pod its GPUs on a node.
func (c *claims) serves(info fwk.NodeInfo) bool {
	return c != nil && (len(c.asked) == 0 || c.pod.Serves(info, c.asked))
}

// fit returns why the node cannot serve the pod. DynamicResources decides what can be allocated: this plugin refuses
// nodes with too few devices for any allocation, and nodes where the devices that the pod is likely to get do not match
// its annotations, which claims do not know.
func (c *claims) fit(info fwk.NodeInfo, r *gpu.Request) gpu.Reason {
	inventory, given, ok := c.pod.Offer(info)
	switch {
	case ok:
		return gpu.FitGranted(inventory, r, given)
	case inventory == nil || c.pod.Loose():
		return gpu.Reason{}
	}
	reason := gpu.Fit(inventory, r)
	if reason.Cause == gpu.NoGPU {
		reason.Detail = "GPUs that claims can have" // a device plugin may give out others
	}
	return reason
}

// inventory is what the node has for the pod, without the GPUs that are measured to be faulty. It fills in the devices
// that the pod is likely to get.
func (c *claims) inventory(info fwk.NodeInfo, v *view, s *podState, at *gpu.Placement) *gpu.Inventory {
	inventory, given, ok := c.pod.Offer(info)
	if inventory == nil {
		return v.inventory
	}
	at.Allocated, at.Granted = ok, given
	node := v.node
	if devices := c.pod.Devices(info); devices != nil {
		node = devices.GPUNode(node)
	}
	return s.live.healthy(inventory, node)
}
