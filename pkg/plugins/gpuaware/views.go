package gpuaware

import (
	"slices"
	"sync"
	"sync/atomic"

	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/claimview"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/process/informers"
)

// view is what is known about one state of one node. It is immutable.
type view struct {
	// generation is that of the NodeInfo, simulated the stamp of the simulated pods on it.
	generation int64
	simulated  uint64
	// devices are those that can be claimed; nil for none.
	devices   *claimview.Devices
	node      *gpuview.Node
	inventory *gpu.Inventory
	// others are the inventories of the GPUs that the node offers under further resource names.
	others []*gpu.Inventory
	// running is what runs there; nil on a node without GPUs.
	running *running
}

// of is the inventory with the GPUs that the request asks for, and these GPUs.
func (v *view) of(r *gpu.Request) (*gpu.Inventory, *gpuview.Node) {
	if len(v.others) > 0 {
		for i, pool := range v.node.Pools()[1:] {
			if v.node.For(r) == pool {
				return v.others[i], pool
			}
		}
	}
	return v.inventory, v.node
}

func (v *view) hasGPU() bool {
	return v.inventory.HasGPU() || slices.ContainsFunc(v.others, (*gpu.Inventory).HasGPU)
}

// views keep the newest view of each node. A NodeInfo's generation identifies its state, except in simulations of
// native pod groups, so that a view is valid while generation, stamp and devices stay the same. It is safe for
// concurrent use.
type views struct {
	*informers.ByNode[atomic.Pointer[view]]
	keys   *gpuview.Keys
	ledger *ledger
	claims *claimview.GPUs
	totals totals
	// counted is done once all nodes have been counted. Nodes that come later are counted when their view is made.
	counted sync.Once
}

// count counts all nodes of the snapshot at the first call.
func (v *views) count(snapshot fwk.SharedLister) {
	v.counted.Do(func() {
		if snapshot == nil {
			return
		}
		infos, _ := snapshot.NodeInfos().List()
		for _, info := range infos {
			v.of(info, snapshot)
		}
	})
}

// of returns the view of a NodeInfo. A NodeInfo that differs from that of the snapshot is a simulation, which does not
// count in the totals.
func (v *views) of(info fwk.NodeInfo, snapshot fwk.SharedLister) *view {
	node, claimable := info.Node(), v.claims.Latest()
	entry := v.Of(node)
	known := entry.Value.Load()
	fresh := &view{generation: info.GetGeneration(), simulated: v.ledger.simulations.stamp(node.Name),
		devices: claimable.Devices(node.Name)}
	if known != nil && known.generation == fresh.generation && known.simulated == fresh.simulated &&
		known.devices == fresh.devices {
		return known
	}
	if known != nil && fresh.devices == nil && known.devices == nil {
		fresh.node = known.node
	} else {
		fresh.node, _ = v.keys.ReadGPUNode(node)
	}
	claimed := claimable.Inventory(fresh.node, info)
	for i, pool := range fresh.node.Pools() {
		switch {
		case i == 0 && claimed != nil:
			fresh.inventory = claimed
		case i == 0:
			fresh.inventory = v.keys.Inventory(pool, info, v.ledger.of, "")
		default:
			fresh.others = append(fresh.others, v.keys.Inventory(pool, info, v.ledger.of, ""))
		}
	}
	if claimed != nil {
		fresh.node = fresh.devices.GPUNode(fresh.node)
	}
	if fresh.hasGPU() {
		var before *running
		if known != nil && known.devices == fresh.devices && known.node.Node == node {
			before = known.running
		}
		fresh.running = v.readRunning(fresh, info, claimable, before)
	}
	entry.Value.Store(fresh)
	if known != nil && !known.hasGPU() && !fresh.hasGPU() {
		return fresh // it has no part in the totals
	}
	if snapshot != nil && !entry.Gone && fresh.simulated == 0 {
		if listed, err := snapshot.NodeInfos().Get(node.Name); err == nil && listed.GetGeneration() == fresh.generation {
			v.totals.set(node.Name, fresh)
		}
	}
	return fresh
}

// totals sum up what nodes have and run, by their newest views, and keep the demand that follows. They are safe for
// concurrent use.
type totals struct {
	mu      sync.Mutex
	supply  gpu.Supply
	running gpu.Histogram
	// capacity is the GPUs by model.
	capacity gpu.Capacity
	demand   *gpu.Demand
	nodes    map[string]*counted
	// past are the packing values of demands that are no longer in use.
	past cacheCounts
}

// cacheCounts are the packing values that were found in a cache, and those that had to be computed.
type cacheCounts struct{ hits, misses uint64 }

// plus adds the counts of a demand.
func (c cacheCounts) plus(d *gpu.Demand) cacheCounts {
	hits, misses := d.Stranding().CacheCounts()
	return cacheCounts{c.hits + hits, c.misses + misses}
}

// counted is a node as it was counted.
type counted struct {
	*view
	model string
	stock gpu.Stock
	// parts are what its GPUs contribute, those of each resource under which it offers some.
	parts []gpu.Part
}

func newTotals() totals {
	return totals{
		capacity: gpu.Capacity{}, demand: gpu.NewDemand(&gpu.Distribution{}, nil, 0), nodes: map[string]*counted{},
	}
}

// set counts a node as it is now; it is removed without a view or without GPUs.
func (t *totals) set(node string, now *view) {
	after := countedOf(now)
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.nodes[node]
	if before == nil {
		before = countedOf(nil)
	}
	if before.model != after.model || before.stock != after.stock {
		t.capacity.Add(before.model, before.stock, -1)
		t.capacity.Add(after.model, after.stock, 1)
	}
	for _, part := range before.parts {
		t.supply.Replace(part, gpu.Part{})
	}
	for _, part := range after.parts {
		t.supply.Replace(gpu.Part{}, part)
	}
	replace(&t.running, before.running, after.running)
	if t.nodes[node] = after; after.node == nil {
		delete(t.nodes, node)
	}
}

// countedOf is a node as it counts, which is nothing without a view or without GPUs.
func countedOf(v *view) *counted {
	if v == nil || !v.hasGPU() {
		return &counted{view: &view{}}
	}
	empty := v.node.Empty()
	whole := len(empty.Devices)
	c := &counted{view: v, model: v.node.Model(), stock: gpu.Stock{GPUs: whole, MemMiB: v.node.MemMiB(),
		Linked: empty.Links.LargestLinked(whole) > 1}}
	for _, inventory := range append([]*gpu.Inventory{v.inventory}, v.others...) {
		if inventory.HasGPU() {
			c.parts = append(c.parts, gpu.PartOf(inventory))
		}
	}
	return c
}

// judge returns the judge of one request's placements.
func (t *totals) judge(s *settings, r *gpu.Request) *gpu.Judge {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.redraw()
	return gpu.NewJudge(s.weights, s.spread, t.demand, &t.supply, r)
}

// redraw makes a new demand if what runs or the capacity has changed enough. The lock is held.
func (t *totals) redraw() {
	inUse := t.demand
	if d := t.running.Redraw(inUse.Distribution()); d != nil {
		t.demand = gpu.NewDemand(d, t.capacity, t.largest())
	} else if inUse.Outgrown(t.capacity) {
		t.demand = inUse.WithCapacity(t.capacity, t.largest())
	}
	if t.demand.Stranding() != inUse.Stranding() {
		t.past = t.past.plus(inUse)
	}
}

// largest is the most GPUs of one node.
func (t *totals) largest() int {
	most := 0
	for _, node := range t.nodes {
		most = max(most, node.stock.GPUs)
	}
	return most
}

// demandNow is the demand for what runs now.
func (t *totals) demandNow() *gpu.Demand {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.redraw()
	return t.demand
}

// cacheCounts is how many packing values were found in the cache so far, and how many computed.
func (t *totals) cacheCounts() cacheCounts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.past.plus(t.demand)
}
