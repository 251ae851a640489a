package claimview

import (
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"
	kubefeatures "k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/process/informers"
)

const (
	// maxExpressions bounds the compiled selectors.
	maxExpressions = 256
	// settleFor is how long after an event the informers may still lag behind it.
	settleFor = time.Second
	// readEvery is the least time between two readings for pods without claims.
	readEvery = 100 * time.Millisecond
	// leastEpoch is how long an epoch lasts at least.
	leastEpoch = 10 * time.Second
	// maxReads bounds the attempts to read all claims at one moment.
	maxReads = 100
)

// GPUs reads GPUs that are served by dynamic resource allocation. All profiles of one scheduler share it. It is safe
// for concurrent use. nil knows no GPUs.
type GPUs struct {
	dra      fwk.SharedDRAManager
	compiled *cel.Cache
	// event is the time of the last possible change, readAt that of the last reading, in nanoseconds of Unix time.
	event, readAt atomic.Int64
	latest        atomic.Pointer[State]
	// mu is held to read.
	mu     sync.Mutex
	slices *Slices
	// epoch is the state that counted at epochAt.
	epoch   *State
	epochAt time.Time
}

// State is which devices are allocated at one moment. It is immutable. nil knows no GPUs.
type State struct {
	dra   fwk.SharedDRAManager
	read  *Slices
	nodes map[string]*Devices
}

// GPUsOf returns the GPUs of these drivers that the scheduler's profiles share; nil where the scheduler does not
// allocate devices.
func GPUsOf(factory kubeinformers.SharedInformerFactory, dra fwk.SharedDRAManager, drivers []string) (*GPUs, error) {
	if dra == nil {
		return nil, nil
	}
	return informers.SharedBy(factory, strings.Join(drivers, "|"), func() (*GPUs, error) {
		features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
		if !features.EnableDynamicResourceAllocation {
			return nil, nil
		}
		g := &GPUs{dra: dra, slices: NoSlices(drivers), compiled: cel.NewCache(maxExpressions, cel.Features{
			EnableConsumableCapacity: features.EnableDRAConsumableCapacity,
			EnableListTypeAttributes: features.EnableDRAListTypeAttributes,
		})}
		stale := cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { g.Stale() }, UpdateFunc: func(any, any) { g.Stale() }, DeleteFunc: func(any) { g.Stale() },
		}
		api := factory.Resource().V1()
		watched := []cache.SharedIndexInformer{api.ResourceSlices().Informer(), api.ResourceClaims().Informer()}
		if utilfeature.DefaultFeatureGate.Enabled(kubefeatures.DRADeviceTaintRules) {
			watched = append(watched, api.DeviceTaintRules().Informer())
		}
		for _, informer := range watched {
			if _, err := informers.Handle(factory, informer, stale); err != nil {
				return nil, fmt.Errorf("watching devices: %w", err)
			}
		}
		g.Stale()
		return g, nil
	})
}

// Stale notes that devices may have been allocated or deallocated.
func (g *GPUs) Stale() {
	if g != nil {
		g.event.Store(time.Now().UnixNano())
	}
}

// settled reports whether nothing has happened since the latest state was read.
func (g *GPUs) settled() bool { return g.readAt.Load() > g.event.Load()+int64(settleFor) }

// Now reads the state of this moment, for pods with claims; nil without GPUs that can be claimed. It reads each time:
// the queue learns of free devices from another event handler, and may try a pod before Stale is called.
func (g *GPUs) Now() *State {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.readAll()
	return g.latest.Load()
}

// Recent is the state of a moment ago, for all other pods; nil without GPUs that can be claimed. It is called once a
// cycle, and reads what has changed since.
func (g *GPUs) Recent() *State {
	if g == nil {
		return nil
	}
	if !g.settled() && time.Since(time.Unix(0, g.readAt.Load())) > readEvery && g.mu.TryLock() {
		defer g.mu.Unlock()
		g.readAll()
	}
	return g.latest.Load()
}

// Latest is the state that was read last, for the nodes of a cycle; nil without GPUs that can be claimed.
func (g *GPUs) Latest() *State {
	if g == nil {
		return nil
	}
	return g.latest.Load()
}

// readAll reads what has changed. The state before stays if claims change all the time. The lock is held.
func (g *GPUs) readAll() {
	defer g.readAt.Store(time.Now().UnixNano())
	list, err := g.dra.ResourceSlices().ListWithDeviceTaintRules()
	if err != nil {
		return
	}
	if g.slices = g.slices.Read(list); len(g.slices.nodes) == 0 {
		g.latest.Store(nil)
		return
	}
	var allocated *structured.AllocatedState
	for range maxReads {
		// The one error is that claims have changed while they were read.
		if allocated, err = g.dra.ResourceClaims().GatherAllocatedState(); err == nil && allocated != nil {
			g.latest.Store(g.slices.state(g.dra, allocated, g.latest.Load()))
			return
		}
	}
}

// state counts what is allocated. What has not changed since the state before is the same object as there.
func (c *Slices) state(dra fwk.SharedDRAManager, allocated *structured.AllocatedState, before *State) *State {
	if before == nil {
		before = &State{}
	}
	s := &State{dra: dra, read: c, nodes: make(map[string]*Devices, len(c.nodes))}
	for name, n := range c.nodes {
		s.nodes[name] = n.devicesAfter(before.nodes[name], allocated)
	}
	return s
}

// Epoch is nil without GPUs that can be claimed. It changes after allocations, not more often than every ten seconds,
// because each change causes all nodes to be read again. Nodes whose pods change are read anyway.
func (g *GPUs) Epoch() any {
	latest := g.Recent()
	if latest == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := time.Now(); latest != g.epoch && now.Sub(g.epochAt) >= leastEpoch {
		g.epoch, g.epochAt = latest, now
	}
	return g.epoch
}

// GPUNode is the node with the GPUs that its slices describe; the node as it is without slices, or if the kubelet
// offers GPUs, so that none is counted twice.
func (g *GPUs) GPUNode(node *gpuview.Node) *gpuview.Node {
	if s := g.Latest(); s != nil {
		if n := s.read.Sole(node); n != nil {
			return n.GPUNode(node)
		}
	}
	return node
}

// Devices are those of a node; nil without GPUs that can be claimed.
func (s *State) Devices(node string) *Devices {
	if s == nil {
		return nil
	}
	return s.nodes[node]
}

// Inventory is the node's inventory with what is allocated; nil without GPUs that can be claimed, or if the kubelet
// offers GPUs, so that none is counted twice.
func (s *State) Inventory(g *gpuview.Node, info fwk.NodeInfo) *gpu.Inventory {
	if s == nil || s.read.Sole(g) == nil {
		return nil
	}
	return s.nodes[g.Node.Name].occupied(info, 0)
}

// Names are the nodes with GPUs that can be claimed.
func (s *State) Names() iter.Seq[string] {
	if s == nil {
		return func(func(string) bool) {}
	}
	return s.read.Names()
}

// Allocated is what is allocated of GPUs to the claims of a pod that runs on a node.
func (s *State) Allocated(pod *v1.Pod, node string) gpu.Request {
	devices := s.Devices(node)
	if devices == nil {
		return gpu.Request{}
	}
	claims := claimsOf(pod, s.dra)
	if made := pod.Status.ExtendedResourceClaimStatus; made != nil {
		if claim, err := s.dra.ResourceClaims().Get(pod.Namespace, made.ResourceClaimName); err == nil {
			claims = append(claims, claim)
		}
	}
	var given []gpu.Grant
	for _, claim := range claims {
		given = devices.node.given(given, claim)
	}
	return requestOf(given)
}
