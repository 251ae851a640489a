package claimview

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpuview"
)

// State is which devices are allocated at one moment. A nil one knows no GPUs.
type State struct {
	claims    *GPUs
	read      *Slices
	allocated *structured.AllocatedState
	// stamps are those of nodes that were asked for.
	stamps sync.Map

	// allocator is upstream's, made when it is first needed.
	once      sync.Once
	allocator structured.Allocator
	failed    error
	elsewhere uint64
	// late is on how many nodes the allocator has found nothing in time.
	late atomic.Int64
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
func (s *State) Inventory(g *gpuview.Node, info fwk.NodeInfo) *gpu.Inventory {
	if n := s.node(g); n != nil {
		return n.Occupied(n.Inventory(s.allocated), info, 0)
	}
	return nil
}

// Held is what a pod that runs on a node holds of GPUs by claims.
func (s *State) Held(pod *v1.Pod, node string) gpu.Request {
	if s == nil || s.read.Node(node) == nil {
		return gpu.Request{}
	}
	var claims []*resourcev1.ResourceClaim
	if c := s.claims.Pod(pod); c != nil {
		claims = c.Allocated()
	}
	if made := pod.Status.ExtendedResourceClaimStatus; made != nil {
		claim, err := s.claims.dra.ResourceClaims().Get(pod.Namespace, made.ResourceClaimName)
		if err == nil && claim.Status.Allocation != nil {
			claims = append(claims, claim)
		}
	}
	var given []gpu.Grant
	for _, claim := range claims {
		given = s.read.Node(node).Given(given, claim.Status.Allocation.Devices.Results)
	}
	return RequestOf(given)
}

func (s *State) node(g *gpuview.Node) *Node {
	if s == nil {
		return nil
	}
	return s.read.Sole(g)
}

// Stamp changes with what Inventory and GPUNode return; 0 where there are no devices.
func (s *State) Stamp(node string) uint64 {
	if s == nil {
		return 0
	}
	if n := s.read.Node(node); n != nil {
		return s.stamp(n)
	}
	return 0
}

// LocalStamp changes with what Allocate returns, unless for devices that several nodes can have; 0 where there are
// none.
func (s *State) LocalStamp(node string) uint64 {
	if s == nil {
		return 0
	}
	if l := s.read.Local(node); l != nil {
		return s.stamp(l)
	}
	return 0
}

// stamp is worked out once.
func (s *State) stamp(of interface {
	Stamp(allocated *structured.AllocatedState) uint64
}) uint64 {
	if known, ok := s.stamps.Load(of); ok {
		return known.(uint64)
	}
	stamp := of.Stamp(s.allocated)
	s.stamps.Store(of, stamp)
	return stamp
}

// Interchangeable reports that it makes no difference which of the node's GPUs the allocator gives, only how many.
func (s *State) Interchangeable(node string) bool {
	n := s.read.Node(node)
	return n != nil && n.Interchangeable()
}

// Devices is what a node has for a pod with these claims, pods counted that are only simulated.
func (s *State) Devices(info fwk.NodeInfo, c *Pod) *gpu.Inventory {
	n := s.read.Node(info.Node().Name)
	if n == nil {
		n = NoDevices()
	}
	return n.Occupied(n.Inventory(s.allocated), info, n.Simulated(info, c.On(info), s.allocated))
}

// Node is the node with the GPUs that its slices describe, regardless of what the kubelet offers.
func (s *State) Node(g *gpuview.Node) *gpuview.Node {
	if n := s.read.Node(g.Node.Name); n != nil {
		return n.GPUNode(g)
	}
	return g
}

// Names are the nodes with GPUs that can be claimed.
func (s *State) Names() iter.Seq[string] {
	if s == nil {
		return func(func(string) bool) {}
	}
	return s.read.Names()
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

// errLate is why further nodes are not searched.
var errLate = errors.New("too many nodes took too long")

// Allocate asks upstream's allocator what it would give the pod on the node. The answer is remembered until the node's
// slices or what is allocated of them changes. A search that takes too long is given up with an error, and is no
// answer.
func (s *State) Allocate(ctx context.Context, info fwk.NodeInfo, c *Pod) (*Outcome, error) {
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	node := info.Node()
	n := s.read.Node(node.Name)
	resources := c.On(info)
	simulated := 0
	var h maphash.Hash
	h.SetSeed(stampSeed)
	if n != nil {
		simulated = n.Simulated(info, resources, s.allocated)
	}
	maphash.WriteComparable(&h, s.LocalStamp(node.Name))
	// Devices elsewhere are reached by the node's labels.
	key := [3]any{s.elsewhere, simulated, len(resources)}
	if len(s.read.Elsewhere()) > 0 {
		key[2] = node
	}
	maphash.WriteComparable(&h, key)
	stamp := h.Sum64()
	memo := s.claims.remembered(c.Shape())
	if known := memo.load(node.Name); known.outcome != nil && known.stamp == stamp {
		return known.outcome, nil
	}
	outcome, err := s.allocate(ctx, node, n, c, resources, simulated)
	if err != nil {
		return nil, err
	}
	memo.store(node.Name, stamped{stamp, outcome}, s.read.Len())
	return outcome, nil
}

// prepare makes the allocator.
func (s *State) prepare(ctx context.Context) error {
	s.once.Do(func() {
		g := s.claims
		s.allocator, s.failed = structured.NewAllocator(ctx, g.features, *s.allocated, g.dra.DeviceClasses(), s.read.List(),
			g.compiled)
		var h maphash.Hash
		h.SetSeed(stampSeed)
		for _, slice := range s.read.Elsewhere() {
			maphash.WriteComparable(&h, slice)
			for i := range slice.Spec.Devices {
				id := structured.MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, slice.Spec.Devices[i].Name)
				maphash.WriteComparable(&h, s.allocated.AllocatedDevices.Has(id))
				for name, q := range s.allocated.AggregatedCapacity[id] {
					maphash.WriteComparable(&h, amountKey{string(name), q.AsApproximateFloat64()})
				}
			}
		}
		s.elsewhere = h.Sum64()
	})
	return s.failed
}

func (s *State) allocate(ctx context.Context, node *v1.Node, n *Node, c *Pod, resources []ClassResource,
	simulated int) (*Outcome, error) {
	claims := c.Claims(resources)
	if simulated > 0 && len(resources) > 0 {
		claims = append([]*resourcev1.ResourceClaim{resources[0].Anonymous(simulated)}, claims...)
	}
	if len(claims) == 0 {
		return &Outcome{OK: true}, nil // all is allocated
	}
	if s.late.Load() >= maxLate {
		return nil, fmt.Errorf("trying to allocate devices on node %s: %w", node.Name, errLate)
	}
	ctx, cancel := context.WithTimeout(ctx, s.claims.nodeWithin)
	defer cancel()
	results, err := s.allocator.Allocate(ctx, node, claims)
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			s.late.Add(1)
		}
		return nil, fmt.Errorf("trying to allocate devices on node %s: %w", node.Name, err)
	}
	out := &Outcome{OK: len(results) == len(claims)}
	if out.OK && n != nil {
		for i := len(claims) - len(c.Claims(resources)); i < len(results); i++ {
			out.Granted = n.Given(out.Granted, results[i].Devices.Results)
		}
	}
	return out, nil
}

// remembered returns the memo of a shape; a fresh one for what is not remembered.
func (g *GPUs) remembered(shape string) *remembered {
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

// store keeps an outcome. Nodes that are gone are forgotten when they are no fewer than those that are not.
func (r *remembered) store(node string, s stamped, nodes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.byNode) > 2*nodes+1024 {
		clear(r.byNode)
	}
	r.byNode[node] = s
}
