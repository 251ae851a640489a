package clusterstate

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
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/utils/lru"

	"berth.dev/berth/pkg/informers"
	"berth.dev/berth/pkg/kubeview"
)

const (
	// maxShapes bounds the kinds of claims that are remembered, and maxExpressions the compiled selectors.
	maxShapes, maxExpressions = 256, 256
	// settleFor is how long to try for a picture of all claims at one moment, and how long after an event what is read may
	// still lag behind it.
	settleFor = time.Second
	// readEvery is how often at most all is read for those who can do with what was read a moment ago.
	readEvery = 100 * time.Millisecond
	// epochOfAtLeast is how long an epoch lasts at least.
	epochOfAtLeast = 10 * time.Second
)

// GPUClaims reads GPUs that are served by dynamic resource allocation. It is what all profiles of one scheduler know
// together, keeps what it read until a slice changes, and is safe for concurrent use. A nil one knows no GPUs.
type GPUClaims struct {
	dra      fwk.SharedDRAManager
	features structured.Features
	compiled *cel.Cache
	// event is when something may have changed last, readAt when all was read last, which latest holds.
	event, readAt atomic.Int64
	latest        atomic.Pointer[ClaimState]
	// outcomes and demands are by the shape of claims.
	outcomes, demands *lru.Cache

	slices atomic.Pointer[kubeview.DeviceSlices]

	// mu is held to read slices.
	mu sync.Mutex
	// followers are told of nodes whose devices have changed, of which untold are those of which they have not been.
	followers []func(node string)
	untold    map[string]struct{}
	// epoch is the number of the picture epochOf, which was looked at epochAt.
	epoch   uint64
	epochOf *ClaimState
	epochAt time.Time
}

// GPUClaimsOf returns what the scheduler's profiles share of the devices of these drivers; nil where the scheduler does
// not allocate devices.
func GPUClaimsOf(factory kubeinformers.SharedInformerFactory, dra fwk.SharedDRAManager, drivers []string) (*GPUClaims, error) {
	if dra == nil {
		return nil, nil
	}
	return informers.SharedBy(factory, strings.Join(drivers, "|"), func() (*GPUClaims, error) {
		features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
		if !features.EnableDynamicResourceAllocation {
			return nil, nil
		}
		g := &GPUClaims{
			dra: dra, features: dynamicresources.AllocatorFeatures(features),
			compiled: cel.NewCache(maxExpressions, cel.Features{
				EnableConsumableCapacity: features.EnableDRAConsumableCapacity, EnableListTypeAttributes: features.EnableDRAListTypeAttributes,
			}),
			outcomes: lru.New(maxShapes), demands: lru.New(maxShapes),
		}
		g.slices.Store(kubeview.NoDeviceSlices(drivers))
		g.untold = map[string]struct{}{}
		g.Stale()
		stale := cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { g.Stale() }, UpdateFunc: func(any, any) { g.Stale() }, DeleteFunc: func(any) { g.Stale() },
		}
		api := factory.Resource().V1()
		for _, informer := range []cache.SharedIndexInformer{
			api.ResourceSlices().Informer(), api.ResourceClaims().Informer(), api.DeviceClasses().Informer(),
		} {
			if _, err := informer.AddEventHandler(stale); err != nil {
				return nil, fmt.Errorf("watching devices: %w", err)
			}
		}
		return g, nil
	})
}

// Stale says that devices may have been allocated or given back.
func (g *GPUClaims) Stale() {
	if g != nil {
		g.event.Store(time.Now().UnixNano())
	}
}

// Follow registers a function that Now and Latest call for each node whose devices have changed. Call it while the
// profiles are made.
func (g *GPUClaims) Follow(follower func(node string)) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.followers = append(g.followers, follower)
}

// Pod finds what has to be allocated for a pod; nil for nothing.
func (g *GPUClaims) Pod(pod *v1.Pod) *kubeview.PodClaims {
	if g == nil {
		return nil
	}
	return kubeview.ReadPodClaims(pod, g.dra)
}

// Latest is the state of a moment ago, for those who do not allocate; nil without GPUs that can be claimed.
func (g *GPUClaims) Latest() *ClaimState {
	if g == nil {
		return nil
	}
	if at := g.readAt.Load(); at < g.event.Load()+int64(settleFor) {
		if now := time.Now().UnixNano(); now-at > int64(readEvery) && g.readAt.CompareAndSwap(at, now) {
			// Without a picture of one moment the one before has to do.
			_, _ = g.Now(context.Background())
		}
	}
	return g.latest.Load()
}

// Epoch is nil without GPUs that can be claimed, and changes with what is allocated, not more often than every ten seconds:
// for those who would have to look at all nodes again. A node with a pod that came or went is looked at anyway.
func (g *GPUClaims) Epoch() any {
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
func (g *GPUClaims) Now(ctx context.Context) (*ClaimState, error) {
	if g == nil {
		return nil, nil
	}
	g.readAt.Store(time.Now().UnixNano())
	read, err := g.readSlices()
	if err != nil {
		return nil, err
	}
	g.tell()
	if read.Len() == 0 {
		g.latest.Store(nil)
		return nil, nil
	}
	s := &ClaimState{claims: g, read: read}
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
func (g *GPUClaims) readSlices() (*kubeview.DeviceSlices, error) {
	list, err := g.dra.ResourceSlices().ListWithDeviceTaintRules()
	if err != nil {
		return nil, fmt.Errorf("listing resource slices: %w", err)
	}
	g.mu.Lock()
	old := g.slices.Load()
	fresh := old.Read(list)
	g.slices.Store(fresh)
	if fresh != old {
		for _, name := range fresh.Changed(old) {
			g.untold[name] = struct{}{}
		}
	}
	g.mu.Unlock()
	return fresh, nil
}

// tell calls the followers. Only Now and Latest do so: event handlers may hold locks that followers need.
func (g *GPUClaims) tell() {
	g.mu.Lock()
	names, followers := g.untold, g.followers
	if len(names) > 0 {
		g.untold = map[string]struct{}{}
	}
	g.mu.Unlock()
	for name := range names {
		for _, follow := range followers {
			follow(name)
		}
	}
}
