package gpuaware

import (
	"sync"
	"sync/atomic"

	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/kubeview"
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

// place is the newest view of a node.
type place = kubeview.NodeEntry[atomic.Pointer[view]]

// views keep the newest view of each node. A NodeInfo's generation is unique to its state, simulated ones included, so a
// view is good exactly as long as the generation is the same. Views are safe for concurrent use.
type views struct {
	*kubeview.ByNode[atomic.Pointer[view]]
	keys   *kubeview.GPUKeys
	ledger *ledger
	totals totals
}

// of returns the view of a NodeInfo, whose node has that place. The snapshot tells states that are from those that are
// only simulated: a simulation is not counted in the totals.
func (v *views) of(p *place, info fwk.NodeInfo, snapshot fwk.SharedLister) *view {
	known := p.Value.Load()
	if known != nil && known.generation == info.GetGeneration() {
		return known
	}
	node := info.Node()
	fresh := &view{generation: info.GetGeneration()}
	if known != nil {
		fresh.node = known.node
	} else {
		fresh.node, _ = v.keys.ReadGPUNode(node)
	}
	fresh.inventory = v.keys.Inventory(fresh.node, info, v.ledger.of, "")
	p.Value.Store(fresh)
	if snapshot != nil && p.Index != kubeview.NoIndex {
		if listed, err := snapshot.NodeInfos().Get(node.Name); err == nil && listed.GetGeneration() == fresh.generation {
			v.totals.set(node.Name, fresh.inventory)
		}
	}
	return fresh
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
