package gpuaware

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/kubeview"
)

const (
	// viewShards spreads the parallel readers of one scheduling cycle.
	viewShards = 32
	// maxViews bounds a shard: a cycle that still holds a node that has since been replaced may leave its view behind.
	maxViews = 4096
)

// view is what is known of one state of one node. It is immutable but for the cache inside.
type view struct {
	generation int64
	node       *kubeview.GPUNode
	inventory  *gpu.Inventory
	// expected is the packing value of the inventory as it was last asked for.
	expected atomic.Pointer[expectation]
}

// expectation is a packing value by the mix that it was reckoned with.
type expectation struct {
	residual *gpu.Residual
	milli    float64
}

// expects returns the packing value of the view's inventory, and nil while no mix is known.
func (v *view) expects(residual *gpu.Residual) *float64 {
	if residual == nil || !residual.Known() {
		return nil
	}
	e := v.expected.Load()
	if e == nil || e.residual != residual {
		e = &expectation{residual: residual, milli: residual.Expected(v.inventory)}
		v.expected.Store(e)
	}
	return &e.milli
}

// views keep the newest view of each node, found by the address of the API object: its name is memory of its own, which
// a cycle would have to fetch for every node. A NodeInfo's generation is unique to its state, simulated ones included,
// so a view is good exactly as long as the generation is the same. Views are safe for concurrent use.
type views struct {
	keys   *kubeview.GPUKeys
	ledger *ledger
	seed   maphash.Seed
	shards [viewShards]viewShard
	totals totals
}

type viewShard struct {
	mu    sync.RWMutex
	views map[*v1.Node]*view
	_     [64]byte // keeps two shards' locks off one cache line
}

func newViews(keys *kubeview.GPUKeys, l *ledger) *views {
	v := &views{keys: keys, ledger: l, seed: maphash.MakeSeed()}
	for i := range v.shards {
		v.shards[i].views = map[*v1.Node]*view{}
	}
	return v
}

func (v *views) shard(node *v1.Node) *viewShard {
	return &v.shards[maphash.Comparable(v.seed, node)%viewShards]
}

// of returns the view of a NodeInfo. The snapshot tells states that are from those that are only simulated: a
// simulation is not counted in the totals.
func (v *views) of(info fwk.NodeInfo, snapshot fwk.SharedLister) *view {
	node := info.Node()
	shard := v.shard(node)
	shard.mu.RLock()
	known := shard.views[node]
	shard.mu.RUnlock()
	if known != nil && known.generation == info.GetGeneration() {
		return known
	}
	fresh := &view{generation: info.GetGeneration()}
	if known != nil {
		fresh.node = known.node
	} else {
		fresh.node, _ = v.keys.ReadGPUNode(node)
	}
	fresh.inventory = v.keys.Inventory(fresh.node, info, v.ledger.of, "")
	shard.mu.Lock()
	if len(shard.views) >= maxViews {
		clear(shard.views)
	}
	shard.views[node] = fresh
	shard.mu.Unlock()
	if snapshot != nil {
		if listed, err := snapshot.NodeInfos().Get(node.Name); err == nil && listed.GetGeneration() == fresh.generation {
			v.totals.set(node.Name, fresh.inventory)
		}
	}
	return fresh
}

// forget drops what a node was before it was replaced or went.
func (v *views) forget(node *v1.Node) {
	shard := v.shard(node)
	shard.mu.Lock()
	delete(shard.views, node)
	shard.mu.Unlock()
}

// totals are sums over the nodes as they were last looked at.
type totals struct {
	mu            sync.RWMutex
	parts         map[string]part
	freeEightGPUs int
	idleMilli     int64
}

// part is one node's part of the totals.
type part struct {
	idleMilli int64
	freeEight bool
}

func (t *totals) set(node string, inv *gpu.Inventory) {
	now := part{
		idleMilli: int64(inv.FreeMilli()),
		freeEight: len(inv.Devices) >= 8 && inv.FreeWhole() == len(inv.Devices),
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.parts[node]
	if now == before {
		return
	}
	t.idleMilli += now.idleMilli - before.idleMilli
	if now.freeEight {
		t.freeEightGPUs++
	}
	if before.freeEight {
		t.freeEightGPUs--
	}
	if t.parts == nil {
		t.parts = map[string]part{}
	}
	if now == (part{}) {
		delete(t.parts, node)
		return
	}
	t.parts[node] = now
}

func (t *totals) read() (freeEightGPUs int, idleMilli int64) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.freeEightGPUs, t.idleMilli
}
