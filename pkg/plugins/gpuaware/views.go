package gpuaware

import (
	"hash/maphash"
	"sync"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/kubeview"
)

// viewShards spreads the parallel readers of one scheduling cycle.
const viewShards = 32

// view is what is known of one state of one node. It is immutable.
type view struct {
	generation int64
	node       *kubeview.GPUNode
	inventory  *gpu.Inventory
}

// views keep the newest view of each node. A NodeInfo's generation is unique to its state, simulated ones included, so
// a view is good exactly as long as the generation is the same. Views are safe for concurrent use.
type views struct {
	keys   *kubeview.GPUKeys
	ledger *ledger
	seed   maphash.Seed
	shards [viewShards]viewShard
	totals totals
}

type viewShard struct {
	mu    sync.RWMutex
	views map[string]*view
	_     [64]byte // keeps two shards' locks off one cache line
}

func newViews(keys *kubeview.GPUKeys, l *ledger) *views {
	v := &views{keys: keys, ledger: l, seed: maphash.MakeSeed()}
	for i := range v.shards {
		v.shards[i].views = map[string]*view{}
	}
	return v
}

func (v *views) shard(node string) *viewShard {
	return &v.shards[maphash.String(v.seed, node)%viewShards]
}

// of returns the view of a NodeInfo. The snapshot tells states that are from those that are only simulated: a
// simulation is not counted in the totals.
func (v *views) of(info fwk.NodeInfo, snapshot fwk.SharedLister) *view {
	node := info.Node()
	shard := v.shard(node.Name)
	shard.mu.RLock()
	known := shard.views[node.Name]
	shard.mu.RUnlock()
	if known != nil && known.generation == info.GetGeneration() {
		return known
	}
	fresh := &view{generation: info.GetGeneration()}
	if known != nil && known.node.Node == node {
		fresh.node = known.node
	} else {
		fresh.node, _ = v.keys.ReadGPUNode(node)
	}
	fresh.inventory = v.keys.Inventory(fresh.node, info, v.ledger.of, "")
	shard.mu.Lock()
	shard.views[node.Name] = fresh
	shard.mu.Unlock()
	if snapshot != nil {
		if listed, err := snapshot.NodeInfos().Get(node.Name); err == nil && listed.GetGeneration() == fresh.generation {
			v.totals.set(node.Name, fresh.inventory)
		}
	}
	return fresh
}

// forget drops a node that is gone.
func (v *views) forget(node *v1.Node) {
	shard := v.shard(node.Name)
	shard.mu.Lock()
	delete(shard.views, node.Name)
	shard.mu.Unlock()
	v.totals.set(node.Name, &gpu.Inventory{})
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
