package kubeview

import (
	"context"
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"sync"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gpu"
)

// ClaimState is which devices are allocated at one moment. A nil one knows no GPUs.
type ClaimState struct {
	claims    *GPUClaims
	read      *claimSlices
	allocated *structured.AllocatedState
	// stamps are those of nodes that were asked for.
	stamps sync.Map

	// allocator is upstream's, made when it is first needed.
	once      sync.Once
	allocator structured.Allocator
	failed    error
	elsewhere uint64
}

// Outcome is what the allocator would allocate for a pod on a node.
type Outcome struct {
	// OK reports that it has devices for all claims.
	OK bool
	// Granted are the GPUs among them, by their index on the node.
	Granted []gpu.Grant
}

// Inventory is the node's inventory with what is allocated; nil where there is nothing to claim, or where the kubelet
// offers GPUs, so that none is counted twice.
func (s *ClaimState) Inventory(g *GPUNode, info fwk.NodeInfo) *gpu.Inventory {
	if n := s.node(g); n != nil {
		return n.occupied(n.inventory(s.allocated), info, 0)
	}
	return nil
}

func (s *ClaimState) node(g *GPUNode) *claimNode {
	if s == nil {
		return nil
	}
	return s.read.node(g)
}

// Stamp changes with what Inventory and GPUNode return; 0 where there are no devices.
func (s *ClaimState) Stamp(node string) uint64 {
	if s == nil {
		return 0
	}
	n := s.read.nodes[node]
	if n == nil {
		return 0
	}
	if known, ok := s.stamps.Load(n); ok {
		return known.(uint64)
	}
	stamp := n.stamp(s.allocated)
	s.stamps.Store(n, stamp)
	return stamp
}

// Alone reports that devices belong to one node each, so that what a node can give depends on its own Stamp alone.
func (s *ClaimState) Alone() bool { return s != nil && len(s.read.elsewhere) == 0 }

// Interchangeable reports that it makes no difference which of the node's GPUs the allocator gives, only how many.
func (s *ClaimState) Interchangeable(node string) bool {
	n := s.read.nodes[node]
	return n != nil && n.alike
}

// Devices is what a node has for a pod with these claims, pods counted that are only simulated.
func (s *ClaimState) Devices(info fwk.NodeInfo, c *PodClaims) *gpu.Inventory {
	n := s.read.nodes[info.Node().Name]
	if n == nil {
		n = &claimNode{empty: gpu.Inventory{Replicas: 1}}
	}
	return n.occupied(n.inventory(s.allocated), info, n.simulated(info, c.on(info), s.allocated))
}

// Node is the node with the GPUs that its slices describe, whatever else the kubelet offers.
func (s *ClaimState) Node(g *GPUNode) *GPUNode {
	if n := s.read.nodes[g.Node.Name]; n != nil {
		return n.gpuNode(g)
	}
	return g
}

// Names are the nodes with GPUs that can be claimed.
func (s *ClaimState) Names() iter.Seq[string] {
	if s == nil {
		return func(func(string) bool) {}
	}
	return maps.Keys(s.read.nodes)
}

// remembered are the outcomes for claims of one shape, by node.
type remembered struct {
	mu     sync.Mutex
	byNode map[string]stamped
}

type stamped struct {
	stamp   uint64
	outcome *Outcome
}

// Allocate asks upstream's allocator what it would give the pod on the node. The answer is remembered until the node's
// slices or what is allocated of them changes.
func (s *ClaimState) Allocate(ctx context.Context, info fwk.NodeInfo, c *PodClaims) (*Outcome, error) {
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	node := info.Node()
	n := s.read.nodes[node.Name]
	resources := c.on(info)
	simulated := 0
	var h maphash.Hash
	h.SetSeed(stampSeed)
	if n != nil {
		simulated = n.simulated(info, resources, s.allocated)
		maphash.WriteComparable(&h, s.Stamp(node.Name))
	}
	// Devices elsewhere are reached by the node's labels.
	key := [3]any{s.elsewhere, simulated, len(resources)}
	if len(s.read.elsewhere) > 0 {
		key[2] = node
	}
	maphash.WriteComparable(&h, key)
	stamp := h.Sum64()
	memo := s.claims.remembered(c.shape)
	if known := memo.load(node.Name); known.outcome != nil && known.stamp == stamp {
		return known.outcome, nil
	}
	outcome, err := s.allocate(ctx, node, n, c, resources, simulated)
	if err != nil {
		return nil, err
	}
	memo.store(node.Name, stamped{stamp, outcome}, len(s.read.nodes))
	return outcome, nil
}

// prepare makes the allocator.
func (s *ClaimState) prepare(ctx context.Context) error {
	s.once.Do(func() {
		g := s.claims
		s.allocator, s.failed = structured.NewAllocator(ctx, g.features, *s.allocated, g.dra.DeviceClasses(), s.read.list, g.compiled)
		var h maphash.Hash
		h.SetSeed(stampSeed)
		for _, slice := range s.read.elsewhere {
			maphash.WriteComparable(&h, slice)
			for i := range slice.Spec.Devices {
				id := structured.MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, slice.Spec.Devices[i].Name)
				maphash.WriteComparable(&h, s.allocated.AllocatedDevices.Has(id))
				for name, q := range s.allocated.AggregatedCapacity[id] {
					maphash.WriteComparable(&h, amountKey{string(name), amountOf(q)})
				}
			}
		}
		s.elsewhere = h.Sum64()
	})
	return s.failed
}

func (s *ClaimState) allocate(ctx context.Context, node *v1.Node, n *claimNode, c *PodClaims, resources []classResource, simulated int) (*Outcome, error) {
	claims := c.claims(resources)
	if simulated > 0 && len(resources) > 0 {
		others := claimFor(resources[:1])
		others.Spec.Devices.Requests[0].Exactly.Count = int64(simulated)
		claims = append([]*resourcev1.ResourceClaim{others}, claims...)
	}
	if len(claims) == 0 {
		return &Outcome{OK: true}, nil // all is allocated
	}
	results, err := s.allocator.Allocate(ctx, node, claims)
	if err != nil {
		return nil, fmt.Errorf("trying to allocate devices on node %s: %w", node.Name, err)
	}
	out := &Outcome{OK: len(results) == len(claims)}
	if out.OK && n != nil {
		for i := len(claims) - len(c.claims(resources)); i < len(results); i++ {
			out.Granted = n.given(out.Granted, results[i].Devices.Results)
		}
	}
	return out, nil
}

// given adds the GPUs that an allocation gives.
func (n *claimNode) given(list []gpu.Grant, results []resourcev1.DeviceRequestAllocationResult) []gpu.Grant {
	for i := range results {
		r := &results[i]
		at, ok := n.byID[structured.MakeDeviceID(r.Driver, r.Pool, r.Device)]
		if !ok || r.AdminAccess != nil && *r.AdminAccess {
			continue
		}
		d := &n.devices[at]
		milli, memMiB := gpu.WholeMilli, -1
		if d.capacity != nil && len(r.ConsumedCapacity) > 0 {
			milli, memMiB = d.share(consumedOf(r.Driver, r.ConsumedCapacity))
		}
		for _, p := range d.parts {
			grant := gpu.Grant{Device: p.gpu, Share: p.of(milli, memMiB), Slice: d.slice}
			if d.slice == "" {
				grant.Model, grant.MemMiB = n.gpus[p.gpu].product, n.gpus[p.gpu].memMiB
			}
			list = append(list, grant)
		}
	}
	return list
}

// remembered returns the memo of a shape; a fresh one for what is not remembered.
func (g *GPUClaims) remembered(shape string) *remembered {
	if known, ok := g.outcomes.Get(shape); ok && shape != "" {
		return known.(*remembered)
	}
	fresh := &remembered{byNode: map[string]stamped{}}
	if shape != "" {
		g.outcomes.Add(shape, fresh)
	}
	return fresh
}

func (r *remembered) load(node string) stamped {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byNode[node]
}

// store keeps an outcome. Nodes that are gone are forgotten when they are as many as those that are not.
func (r *remembered) store(node string, s stamped, nodes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.byNode) > 2*nodes+1024 {
		clear(r.byNode)
	}
	r.byNode[node] = s
}
