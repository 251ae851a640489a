package gpuaware

import (
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/kubeview"
)

// maxPlaces bounds what is kept: a cycle that still holds a node that has since been replaced may leave its place behind.
const maxPlaces = 1 << 17

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

// place is what the plugin keeps of one node across cycles.
type place struct {
	// index is the node's in every memo.
	index int
	// view is the newest.
	view atomic.Pointer[view]
}

// views keep the newest view of each node. A place is found by the address of the API object: its name is memory of its
// own, which a cycle would have to fetch for every node. A NodeInfo's generation is unique to its state, simulated ones
// included, so a view is good exactly as long as the generation is the same. Views are safe for concurrent use, and
// finding one takes no lock.
type views struct {
	keys   *kubeview.GPUKeys
	ledger *ledger
	// places are *place by *v1.Node.
	places sync.Map
	totals totals

	mu     sync.Mutex
	byName map[string]named
	free   []int
	// indices is how many were ever given out.
	indices atomic.Int64
}

// named is the place of a node and the object by which it is found.
type named struct {
	node  *v1.Node
	place *place
}

func newViews(keys *kubeview.GPUKeys, l *ledger) *views {
	return &views{keys: keys, ledger: l, byName: map[string]named{}}
}

// at returns the place of a node.
func (v *views) at(node *v1.Node) *place {
	if p, ok := v.places.Load(node); ok {
		return p.(*place)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	known, ok := v.byName[node.Name]
	switch {
	case ok && known.node == node:
		return known.place
	case ok:
		v.places.Delete(known.node)
	case len(v.byName) >= maxPlaces:
		v.places.Clear()
		clear(v.byName)
		v.free = nil
		v.indices.Store(0)
	}
	// A replaced node keeps its index, but not its view, which is of what the old one offered.
	p := &place{}
	switch n := len(v.free); {
	case ok:
		p.index = known.place.index
	case n > 0:
		p.index, v.free = v.free[n-1], v.free[:n-1]
	default:
		p.index = int(v.indices.Add(1)) - 1
	}
	v.byName[node.Name] = named{node, p}
	v.places.Store(node, p)
	return p
}

// of returns the view of a NodeInfo, whose node has that place. The snapshot tells states that are from those that are
// only simulated: a simulation is not counted in the totals.
func (v *views) of(p *place, info fwk.NodeInfo, snapshot fwk.SharedLister) *view {
	known := p.view.Load()
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
	p.view.Store(fresh)
	if snapshot != nil {
		if listed, err := snapshot.NodeInfos().Get(node.Name); err == nil && listed.GetGeneration() == fresh.generation {
			v.totals.set(node.Name, fresh.inventory)
		}
	}
	return fresh
}

// forget drops what a node was before it went.
func (v *views) forget(node *v1.Node) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.places.Delete(node)
	if known, ok := v.byName[node.Name]; ok && known.node == node {
		delete(v.byName, node.Name)
		v.free = append(v.free, known.place.index)
	}
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
