package claimview

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	kubeinformers "k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"
	kubefeatures "k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/utils/lru"

	"berth.dev/berth/pkg/informers"
)

const (
	// maxShapes bounds the kinds of claims that are remembered, and maxExpressions the compiled selectors.
	maxShapes, maxExpressions = 256, 256
	// settleFor is how long to try for a picture of all claims at one moment, and how long after an event what is read may
	// still lag behind it.
	settleFor = time.Second
	// readEvery is how often at most all is read in the background.
	readEvery = 100 * time.Millisecond
	// searchNodeWithin is how long the allocator may search one node, and searchKindsWithin how long all kinds of
	// nodes. Its search is exhaustive: partitions that do not fit together keep it busy for years. The scheduler's own
	// filter waits for ten seconds.
	searchNodeWithin, searchKindsWithin = 200 * time.Millisecond, time.Second
	// maxLate is how many nodes are searched without success for one pod, and lateFor how long claims are not tried
	// again for which there was not enough time.
	maxLate, lateFor = 10, 10 * time.Second
	// epochOfAtLeast is how long an epoch lasts at least.
	epochOfAtLeast = 10 * time.Second
)

// GPUs reads GPUs that are served by dynamic resource allocation. It is what all profiles of one scheduler know
// together, keeps what it read until a slice changes, and is safe for concurrent use. A nil one knows no GPUs.
type GPUs struct {
	dra      fwk.SharedDRAManager
	nodes    corelisters.NodeLister
	features structured.Features
	// compiled has its compiler from the start: making it does not count against the time of the first search.
	compiled *cel.Cache
	// nodeWithin and kindsWithin bound searches, of one node and of all kinds of nodes.
	nodeWithin, kindsWithin time.Duration
	// event is when something may have changed last; wake tells of it.
	event  atomic.Int64
	wake   chan struct{}
	latest atomic.Pointer[State]
	// outcomes and demands are by the shape of claims, and so is until when claims are not tried again.
	outcomes, demands, late *lru.Cache

	slices atomic.Pointer[Slices]

	// mu is held to read slices.
	mu sync.Mutex
	// followers are told of nodes whose devices have changed, untold are the nodes that they have yet to be told of.
	followers []func(node string)
	untold    map[string]struct{}
	// epoch is the number of the picture epochOf, which was looked at epochAt.
	epoch   uint64
	epochOf *State
	epochAt time.Time
}

// GPUsOf returns what the scheduler's profiles share of the devices of these drivers; nil where the scheduler does
// not allocate devices. They are read until ctx ends.
func GPUsOf(
	ctx context.Context, factory kubeinformers.SharedInformerFactory, dra fwk.SharedDRAManager, drivers []string,
) (*GPUs, error) {
	if dra == nil {
		return nil, nil
	}
	return informers.SharedBy(factory, strings.Join(drivers, "|"), func() (*GPUs, error) {
		features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
		if !features.EnableDynamicResourceAllocation {
			return nil, nil
		}
		g := &GPUs{
			dra: dra, nodes: factory.Core().V1().Nodes().Lister(), features: dynamicresources.AllocatorFeatures(features),
			compiled: cel.NewCache(maxExpressions, cel.Features{
				EnableConsumableCapacity: features.EnableDRAConsumableCapacity,
				EnableListTypeAttributes: features.EnableDRAListTypeAttributes,
			}),
			nodeWithin: searchNodeWithin, kindsWithin: searchKindsWithin,
			outcomes: lru.New(maxShapes), demands: lru.New(maxShapes), late: lru.New(maxShapes),
			wake: make(chan struct{}, 1), untold: map[string]struct{}{},
		}
		g.slices.Store(NoSlices(drivers))
		stale := cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { g.Stale() }, UpdateFunc: func(any, any) { g.Stale() }, DeleteFunc: func(any) { g.Stale() },
		}
		api := factory.Resource().V1()
		watched := []cache.SharedIndexInformer{
			api.ResourceSlices().Informer(), api.ResourceClaims().Informer(), api.DeviceClasses().Informer(),
		}
		if utilfeature.DefaultFeatureGate.Enabled(kubefeatures.DRADeviceTaintRules) {
			watched = append(watched, api.DeviceTaintRules().Informer())
		}
		for _, informer := range watched {
			if _, err := informers.Handle(factory, informer, stale); err != nil {
				return nil, fmt.Errorf("watching devices: %w", err)
			}
		}
		g.Stale()
		go g.keep(ctx)
		return g, nil
	})
}

// Stale says that devices may have been allocated or given back.
func (g *GPUs) Stale() {
	if g != nil {
		g.event.Store(time.Now().UnixNano())
		g.poke()
	}
}

func (g *GPUs) poke() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// keep reads what has changed and tells the followers, until ctx ends. What is read may lag behind an event, so that it
// goes on for a moment.
func (g *GPUs) keep(ctx context.Context) {
	ticker := time.NewTicker(readEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.wake:
		}
		for settled := false; !settled; {
			settled = time.Since(time.Unix(0, g.event.Load())) > settleFor
			// Without a picture of one moment the one before has to do.
			_, _ = g.Now(ctx)
			g.tell()
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}
}

// Follow registers a function that is called in the background for each node whose devices have changed. Call it while
// the profiles are made.
func (g *GPUs) Follow(follower func(node string)) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.followers = append(g.followers, follower)
}

// Pod finds what has to be allocated for a pod; nil for nothing.
func (g *GPUs) Pod(pod *v1.Pod) *Pod {
	if g == nil {
		return nil
	}
	return readPod(pod, g.dra)
}

// MayHold is a cheap test that is false only for pods that hold no GPU by claims.
func (g *GPUs) MayHold(pod *v1.Pod) bool {
	return g.Serves(pod) && g.slices.Load().Len() > 0
}

// Serves is a cheap test that is false only for pods for which no device is allocated.
func (g *GPUs) Serves(pod *v1.Pod) bool {
	return g != nil && ClaimsDevices(pod, g.dra.DeviceClassResolver())
}

// MayServe is a cheap test that is false only for nodes without devices for the claims of a pod.
func (g *GPUs) MayServe(pod *v1.Pod, node string) bool {
	if !g.Serves(pod) {
		return false
	}
	read := g.slices.Load()
	return read.Local(node) != nil || len(read.Elsewhere()) > 0
}

// Latest is the state of a moment ago, for those who do not allocate; nil without GPUs that can be claimed.
func (g *GPUs) Latest() *State {
	if g == nil {
		return nil
	}
	return g.latest.Load()
}

// Epoch is nil without GPUs that can be claimed, and changes with what is allocated, not more often than every ten
// seconds: for those who would have to look at all nodes again. A node with a pod that came or went is looked at
// anyway.
func (g *GPUs) Epoch() any {
	latest := g.Latest()
	if latest == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := time.Now(); latest != g.epochOf && now.Sub(g.epochAt) >= epochOfAtLeast {
		g.epoch, g.epochOf, g.epochAt = g.epoch+1, latest, now
	}
	return g.epoch
}

// Now is the state of this moment; nil without GPUs that can be claimed.
func (g *GPUs) Now(ctx context.Context) (*State, error) {
	if g == nil {
		return nil, nil
	}
	read, err := g.readSlices()
	if err != nil {
		return nil, err
	}
	if read.Len() == 0 {
		g.latest.Store(nil)
		return nil, nil
	}
	s := &State{claims: g, read: read}
	err = wait.PollUntilContextTimeout(ctx, time.Microsecond, settleFor, true, func(context.Context) (bool, error) {
		state, err := g.dra.ResourceClaims().GatherAllocatedState()
		s.allocated = state
		return err == nil && state != nil, nil // the one error is that claims have changed while they were read
	})
	if err != nil {
		return nil, fmt.Errorf("reading allocated devices: %w", err)
	}
	g.latest.Store(s)
	return s, nil
}

// readSlices reads the slices that have changed.
func (g *GPUs) readSlices() (*Slices, error) {
	list, err := g.dra.ResourceSlices().ListWithDeviceTaintRules()
	if err != nil {
		return nil, fmt.Errorf("listing resource slices: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	old := g.slices.Load()
	fresh := old.Read(list)
	if fresh == old {
		return old, nil
	}
	g.slices.Store(fresh)
	for _, name := range fresh.Changed(old) {
		g.untold[name] = struct{}{}
	}
	g.poke() // a reader may hold locks that followers need
	return fresh, nil
}

// tell calls the followers.
func (g *GPUs) tell() {
	g.mu.Lock()
	names, followers := g.untold, g.followers
	g.untold = map[string]struct{}{}
	g.mu.Unlock()
	for name := range names {
		for _, follow := range followers {
			follow(name)
		}
	}
}
