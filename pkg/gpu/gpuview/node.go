package gpuview

import (
	"math"
	"reflect"
	"slices"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/catalog"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

// maxUnits bounds the units of a resource that a node offers, and so the time slices of a GPU.
const maxUnits = math.MaxInt32

// Node is what a Node object says about its GPUs, before any pod is counted. It is immutable.
type Node struct {
	// Node is the object it was read from.
	Node *v1.Node
	// empty is the inventory of the node without pods.
	empty gpu.Inventory
	// allocatable is how many units of the GPU resource the kubelet offers.
	allocatable int64
	// uuids of the devices in index order, nil where the node does not list them.
	uuids []string
	// first reports that these are the GPUs under the first resource name. others are those under further names, which are
	// never shared.
	first  bool
	others []*Node
}

// Model is the product of the node's GPUs; empty without GPUs or when unknown.
func (g *Node) Model() string { return g.empty.Model }

// GPUs is how many physical GPUs the node has, those that are cut into slices included.
func (g *Node) GPUs() int {
	n := len(g.empty.Devices) + g.empty.SlicedGPUs
	for _, o := range g.others {
		n += len(o.empty.Devices) + o.empty.SlicedGPUs
	}
	return n
}

// MemMiB is the memory of each GPU, the least where they differ; 0 when unknown.
func (g *Node) MemMiB() int { return g.empty.MemMiB }

// NVIDIA reports whether NVIDIA made any of the GPUs, as far as their resources and products tell.
func (g *Node) NVIDIA() bool {
	return slices.ContainsFunc(g.Pools(), func(pool *Node) bool {
		product, _ := catalog.Lookup(pool.empty.Model)
		if maker(pool.empty.Resource) == nvidia || len(pool.uuids) > 0 && product.Maker == catalog.NVIDIA {
			return true
		}
		return slices.ContainsFunc(pool.empty.Slices, func(s gpu.SliceCount) bool { return maker(s.Resource) == nvidia })
	})
}

// Offered reports whether a device plugin offers GPUs or slices of them. GPUs that are known by a label, a list or the
// instance type alone may be given out by claims.
func (g *Node) Offered() bool {
	return g.empty.Agent == gpu.AgentRegistered || slices.ContainsFunc(g.Pools(), func(pool *Node) bool {
		return pool.allocatable > 0 || len(pool.empty.Slices) > 0
	})
}

// Unknown reports whether the model and the memory of the GPUs of the pool are unknown to labels and tables.
func (g *Node) Unknown() (model, memory bool) {
	inv := &g.empty
	if memory = inv.MemMiB == 0; len(inv.Devices) == 0 {
		memory = slices.ContainsFunc(inv.Slices, func(s gpu.SliceCount) bool { return s.Profile.MemMiB == 0 })
	}
	return inv.Model == "" && len(inv.Devices)+inv.SlicedGPUs > 0, memory
}

// Empty is the inventory of the node without pods. It must not be changed.
func (g *Node) Empty() *gpu.Inventory { return &g.empty }

// UUIDs are the devices' UUIDs in index order, nil when the node does not list them.
func (g *Node) UUIDs() []string { return g.uuids }

// WithDevices is the node with the GPUs of this inventory instead of its own.
func (g *Node) WithDevices(empty gpu.Inventory, uuids []string) *Node {
	out := *g
	out.empty, out.uuids = empty, uuids
	out.empty.CPUMilli, out.empty.Leaving = g.empty.CPUMilli, g.empty.Leaving
	return &out
}

// Pools are the node's GPUs by the resource under which it offers them; the first is the node itself.
func (g *Node) Pools() []*Node { return append([]*Node{g}, g.others...) }

// For is the pool with the resource or the slices that the request asks for.
func (g *Node) For(r *gpu.Request) *Node {
	for _, o := range g.others {
		if o.empty.Serves(r) && !g.empty.Serves(r) {
			return o
		}
	}
	return g
}

// SameOffer reports whether two states of a node offer the same GPUs, apart from the pods on it.
func (g *Node) SameOffer(other *Node) bool {
	return slices.EqualFunc(g.Pools(), other.Pools(), func(a, b *Node) bool { return reflect.DeepEqual(a.empty, b.empty) })
}

// ReadGPUNode reads the GPUs of a node. It returns the values that cannot be used; they are treated as absent unless
// their Effect says otherwise.
func (k *Keys) ReadGPUNode(node *v1.Node) (*Node, []*wellknown.BadValue) {
	b := &nodeReader{keys: k, node: node, offers: k.offers(node)}
	g := b.pool(0)
	for i := 1; i < len(b.offers); i++ {
		g.others = append(g.others, b.pool(i))
	}
	return g, b.bad
}

// pool reads the GPUs behind one of the resources that the node offers.
func (b *nodeReader) pool(i int) *Node {
	g := &Node{Node: b.node, first: i == 0}
	b.offer = gpuOffer{}
	if i < len(b.offers) {
		b.offer = b.offers[i]
	}
	inv := &g.empty
	inv.Replicas = 1
	inv.CPUMilli = b.node.Status.Allocatable.Cpu().MilliValue()
	inv.Leaving = podview.LeavingTaint(b.node)
	inv.Resource, g.allocatable = b.offer.resource, b.offer.units

	var devices []registeredGPU
	byAgent := false
	if i == 0 {
		devices, byAgent = b.registered()
		inv.Mode = b.mode(byAgent)
		if byAgent || b.node.Labels[wellknown.GPUAgentKey] != "" {
			inv.Agent = gpu.AgentDeclared
		}
	}
	mig := b.migResources(i)
	count := b.number(b.keys.CountLabels, MaxGPUs)
	provided := b.provided()
	none := inv.Resource == "" && count == 0 && provided.count == 0
	if none && len(devices) == 0 && len(mig) == 0 && inv.Mode != gpu.ModeDRA {
		return g
	}
	switch {
	case len(devices) > 0:
		inv.Agent = gpu.AgentRegistered
	case byAgent:
		inv.Agent = gpu.AgentUnlisted
	}
	product := b.describe(inv, &provided)
	if inv.Resource == "" && len(mig) == 0 {
		inv.Resource = OfMaker(b.keys.Resources, domains[product.Maker])
	}
	cut := b.addDevices(g, devices, mig, count, &provided)
	// The links are among all GPUs of the node. Which of them are in slices, or behind which resource, is not known.
	b.links(inv, product, i == 0 && !b.oneOfSeveral() && !cut)
	inv.IndexKnown = inv.Mode == gpu.ModeShared
	return g
}

// addDevices fills in devices and slices, and reports whether GPUs are cut into slices. count is the number of physical
// GPUs by the labels of feature discovery, or of slices where these are handed out as GPUs; 0 without labels.
func (b *nodeReader) addDevices(g *Node, devices []registeredGPU, mig []gpu.SliceCount, count int, p *provided) bool {
	inv := &g.empty
	// Where an agent lists the GPUs, the units say nothing about them.
	partition, replicas, whole := "", 1, len(devices)
	if !inv.Agent.Lists() {
		partition = b.partition(p)
		replicas = b.replicas(count, partition, p)
		whole = min(ceil(g.allocatable, replicas), MaxGPUs)
	}
	if count == 0 {
		count = p.count
	}
	if b.oneOfSeveral() {
		count = whole // the count is that of all resources of the maker
	}
	if len(mig) > 0 && (partition == "" || g.allocatable == 0) {
		b.cutSome(inv, mig, count, whole)
	}
	switch {
	case partition != "" && g.allocatable > 0:
		b.cutAll(inv, partition, replicas, count, g.allocatable)
	case len(devices) > 0:
		g.register(devices)
	case len(mig) > 0:
		inv.Devices = gpu.NewDevices(whole, inv.MemMiB)
	case inv.Mode != gpu.ModeDRA:
		inv.Devices = gpu.NewDevices(max(count, whole), inv.MemMiB)
		for i := whole; i < len(inv.Devices); i++ { // the kubelet does not say which GPUs it does not offer
			inv.Devices[i].Unhealthy = true
		}
	}
	if inv.Mode == gpu.ModeDevicePlugin && partition == "" {
		inv.Replicas = replicas
		inv.FreeReplicas = int(g.allocatable)
	}
	return len(mig) > 0 || partition != ""
}

// describe fills in model, memory and generation: from feature discovery, else from the labels of the provider, else
// from what is documented of the instance type. The table of products fills in the rest.
func (b *nodeReader) describe(inv *gpu.Inventory, p *provided) catalog.Product {
	inv.Model = b.model()
	if inv.Model == "" {
		inv.Model = p.model
	}
	product, _ := catalog.Lookup(inv.Model)
	if catalog.SliceProfile(b.first(b.keys.ProductLabels)) == "" { // else the label holds the memory of a slice
		inv.MemMiB = b.memory()
	}
	for _, fallback := range []int{p.memMiB, product.MemMiB} {
		if inv.MemMiB == 0 {
			inv.MemMiB = fallback
		}
	}
	if inv.Generation = b.generation(); inv.Generation == 0 {
		inv.Generation = product.Generation
	}
	return product
}

// gpuOffer is a GPU resource that the kubelet offers.
type gpuOffer struct {
	resource string
	units    int64
	shared   bool
}

// offers are the GPU resources that the kubelet offers, in the order of the keys.
func (k *Keys) offers(node *v1.Node) []gpuOffer {
	var offers []gpuOffer
	for shared, names := range [][]string{k.Resources, k.SharedResources} {
		for _, n := range names {
			if q := min(quantity(node.Status.Allocatable, n), maxUnits); q > 0 {
				offers = append(offers, gpuOffer{n, q, shared == 1})
			}
		}
	}
	return offers
}
