package gpuaware

import (
	"context"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/kubeview"
)

// claims are the GPUs that dynamic resource allocation can give the pod in this cycle. The allocator takes the first
// devices that a class selects, so that the plugin chooses the node and not the device.
type claims struct {
	resource string
	// own reports that the pod claims devices itself, so that no device plugin can serve it.
	own bool
	// byNode are the devices of each node.
	byNode map[string]*gpu.Inventory
	// elsewhere reports devices that belong to no single node.
	elsewhere bool
}

// readClaims finds the devices by which a claim could serve the pod: where a device class stands in for the extended
// resource that it asks for, or in claims of its own.
func (p *Plugin) readClaims(ctx context.Context, pod *v1.Pod, s *podState) error {
	dra := p.handle.SharedDRAManager()
	if dra == nil {
		return nil
	}
	var class *resourcev1.DeviceClass
	own := false
	switch {
	case s.request.Count > 0 && s.request.Resource != "" && !s.request.Shared:
		if resolver := dra.DeviceClassResolver(); resolver != nil {
			class = resolver.GetDeviceClass(v1.ResourceName(s.request.Resource))
		}
	case s.request.Count == 0 && len(pod.Spec.ResourceClaims) > 0:
		var count int
		if class, count = p.settings.keys.ClaimedGPUs(pod, dra); class != nil {
			own = true
			s.request.Resource, s.request.Count, s.request.Milli = *class.Spec.ExtendedResourceName, count, gpu.WholeMilli
		}
	}
	if class == nil {
		return nil
	}
	byNode, elsewhere, err := p.cluster.claims.Inventories(ctx, dra, class)
	if err != nil {
		return err
	}
	s.claims = &claims{resource: s.request.Resource, own: own, byNode: byNode, elsewhere: elsewhere}
	return nil
}

// serve reports whether claims, not a device plugin, serve the pod on a node: the kubelet offers none of the resource
// there, or the pod came with claims of its own.
func (c *claims) serve(info fwk.NodeInfo) bool {
	return c != nil && (c.own || info.GetAllocatable().GetScalarResources()[v1.ResourceName(c.resource)] == 0)
}

// inventory is what a node has to claim. A node without devices of its own may still reach some elsewhere; then only
// the allocator knows.
func (c *claims) inventory(info fwk.NodeInfo) *gpu.Inventory {
	base := c.byNode[info.Node().Name]
	if base == nil {
		base = &gpu.Inventory{Replicas: 1}
		if c.elsewhere {
			base.Mode = gpu.ModeDRA
		}
	}
	return kubeview.ClaimInventory(base, info, c.resource)
}
