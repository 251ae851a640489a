package gpudemand

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/claimview"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/fleet"
	"berth.dev/berth/pkg/gpu/mix"
	"berth.dev/berth/pkg/gpuview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/signals"
)

// Learnt is the demand as it was last drawn up. It is immutable but for the cache inside.
type Learnt struct {
	// Number counts from 1; it is never given twice.
	Number uint64
	Demand *gpu.Demand
}

// Learner learns the mix of the workload from the pods that are given a node, and the capacity that they share. It
// draws up the mix in the informers' goroutines, never in a scheduling cycle. It is safe for concurrent use.
type Learner struct {
	keys   *gpuview.Keys
	gangs  *gangview.Gangs
	claims *claimview.GPUs
	now    atomic.Pointer[Learnt]
	// cliques is how many nodes are in an NVLink domain that spans nodes.
	cliques atomic.Int64

	mu       sync.Mutex
	mix      *mix.Mix
	arrivals arrivals
	fleet    *fleet.Fleet
	taints   taintSets
	// measured are the nodes whose GPUs DCGM measures.
	measured map[string]signals.Node
	// past are those of caches that are no longer in use.
	past cacheCounts
}

// cacheCounts are the packing values that were found in a cache, and those that had to be computed.
type cacheCounts struct{ hits, misses uint64 }

// New returns a learner that knows of no pod and no node yet.
func New(keys *gpuview.Keys, gangs *gangview.Gangs, claims *claimview.GPUs) *Learner {
	l := &Learner{keys: keys, gangs: gangs, claims: claims, mix: mix.New(), fleet: fleet.New(), taints: newTaintSets(),
		measured: map[string]signals.Node{}}
	l.now.Store(&Learnt{Number: 1, Demand: gpu.NewDemand(l.mix.Distribution(), nil, 0)})
	return l
}

// Learnt returns the demand in use.
func (l *Learner) Learnt() *Learnt { return l.now.Load() }

// Started counts in a pod of that class that was given a node.
func (l *Learner) Started(class mix.Class, pod *v1.Pod) {
	owner, group := ownerOf(pod), GroupOf(l.gangs, pod)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mix.Observe(class, owner, l.arrivals.independent(group, l.mix.Known()))
	l.redraw()
	l.mix.Started(class, owner, began(pod))
}

// redraw draws up the mix if it has moved. The lock is held.
func (l *Learner) redraw() {
	now := l.now.Load()
	d := l.mix.Redraw(now.Demand.Distribution())
	if d == nil {
		return
	}
	hits, misses := now.Demand.Stranding().CacheCounts()
	l.past.hits, l.past.misses = l.past.hits+hits, l.past.misses+misses
	l.now.Store(&Learnt{Number: now.Number + 1, Demand: gpu.NewDemand(d, l.fleet.Capacity(), l.fleet.Largest())})
}

// Ended counts a pod of that class that has left its node.
func (l *Learner) Ended(class mix.Class, pod *v1.Pod, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mix.Ended(class, ownerOf(pod), began(pod), at)
}

// began is when the pod was given its node, or was created if its status does not say.
func began(pod *v1.Pod) time.Time {
	if at, ok := podview.ScheduledAt(pod); ok {
		return at
	}
	return pod.CreationTimestamp.Time
}

// ClassOf reads what a pod is to the mix. Pods that can only ever run outside of the GPU nodes are no part of it: they
// say nothing of how those fill up. It returns known as false for pods that may claim GPUs, only not how many is known.
func (l *Learner) ClassOf(ctx context.Context, pod *v1.Pod) (class mix.Class, mixed, known bool) {
	request, err := l.keys.PodGPURequest(pod)
	return l.ClassBy(ctx, pod, request, err)
}

// ClassBy is ClassOf where the pod's request, or why there is none, has been read already.
func (l *Learner) ClassBy(ctx context.Context, pod *v1.Pod, request gpuview.Request, err error) (class mix.Class,
	mixed, known bool) {
	if err != nil || podview.BelongsToNode(pod) {
		return mix.Class{}, false, true
	}
	if !request.WantsGPU() && claimview.MayClaim(pod) {
		claimed, known := l.claims.Demand(ctx, l.claims.Pod(pod)) // without the lock: it may take long
		if !known && (len(pod.Spec.ResourceClaims) > 0 || l.claims.Serves(pod)) {
			return mix.Class{}, false, false
		}
		request.Count, request.Milli, request.Slices = claimed.Count, claimed.Milli, claimed.Slices
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !request.WantsGPU() && !l.taints.admit(pod) {
		return mix.Class{}, false, true
	}
	// A share given by memory is counted against the least memory of a GPU that holds it.
	return gpu.ClassOf(&request.Request, l.fleet.LeastMemMiB(request.ShareMemMiB)), true, true
}

// CacheCounts is how many packing values were found in the cache so far, and how many computed.
func (l *Learner) CacheCounts() (hits, misses uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	hits, misses = l.now.Load().Demand.Stranding().CacheCounts()
	return l.past.hits + hits, l.past.misses + misses
}

// NodeSeen counts a node's GPUs in the capacity.
func (l *Learner) NodeSeen(n *gpuview.Node) {
	name := n.Node.Name
	if n.GPUs() == 0 && n.Clique == "" {
		l.NodeGone(name)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fleet.Set(name, fleet.Node{
		Model: n.Model(), GPUs: n.WholeGPUs(), MemMiB: n.MemMiB(), Clique: n.Clique,
		Linked: n.Empty().Links.LargestLinked(n.WholeGPUs()) > 1,
	})
	l.taints.set(name, n.Node.Spec.Taints)
	if n.NVIDIA() {
		l.measured[name] = signals.Node{Name: name, Hostname: n.Node.Labels[v1.LabelHostname]}
	} else {
		delete(l.measured, name)
	}
	l.recount()
}

// NodeGone takes them out.
func (l *Learner) NodeGone(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fleet.Remove(name)
	l.taints.remove(name)
	delete(l.measured, name)
	l.recount()
}

// recount spreads the demand over the capacity as it is now, if that has changed.
func (l *Learner) recount() {
	l.cliques.Store(int64(l.fleet.Cliques()))
	if l.fleet.Changed() {
		now := l.now.Load()
		l.now.Store(&Learnt{
			Number: now.Number + 1, Demand: now.Demand.WithCapacity(l.fleet.Capacity(), l.fleet.Largest()),
		})
	}
}

// HasCliques reports whether NVLink connects any nodes with each other.
func (l *Learner) HasCliques() bool { return l.cliques.Load() > 0 }

// ByClique counts pods by the NVLink domains of their nodes, and all of them. Those on nodes without GPUs do not count.
func (l *Learner) ByClique(nodes []string) (byClique map[string]int, total int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fleet.ByClique(nodes)
}

// Measured lists the nodes whose GPUs are measured, under the names that series may give them: DCGM knows NVIDIA's
// alone.
func (l *Learner) Measured() []signals.Node {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.measured))
}
