package gpuaware

import (
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"

	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/claimview"
	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpuview"
	"berth.dev/berth/pkg/informers"
)

// view is what is known of one state of one node. It is immutable.
type view struct {
	// generation is that of the NodeInfo, stamp that of the devices that can be claimed.
	generation int64
	stamp      uint64
	node       *gpuview.Node
	inventory  *gpu.Inventory
	// others are the inventories of the GPUs that the node offers under further resource names.
	others []*gpu.Inventory
}

// of is the inventory against which a request is held, and the GPUs that it counts.
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

// place is the newest view of a node.
type place = informers.NodeEntry[atomic.Pointer[view]]

// views keep the newest view of each node. A NodeInfo's generation is unique to its state, simulated ones included but
// for those of native pod groups, so a view is good exactly as long as the generation and the stamp are the same. Views
// are safe for concurrent use.
type views struct {
	*informers.ByNode[atomic.Pointer[view]]
	keys *gpuview.Keys
	// bad reports what cannot be read of nodes.
	bad    *informers.BadNodeValues
	ledger *ledger
	claims *claimview.GPUs
	totals totals
}

var stateSeed = maphash.MakeSeed()

// state is a number that is another for each state of a node and of the devices that can be claimed there: as they are
// in this cycle for a pod that claims some, as they were a moment ago for others.
func (v *views) state(info fwk.NodeInfo, c *claims) int64 {
	var stamp uint64
	if c != nil {
		stamp = c.state.LocalStamp(info.Node().Name)
	} else {
		stamp = v.claims.Latest().Stamp(info.Node().Name)
	}
	if stamp = v.stamp(info.Node().Name, stamp); stamp == 0 {
		return info.GetGeneration()
	}
	// Generations are counted from 1: they never get so high.
	return int64(maphash.Comparable(stateSeed, [2]uint64{uint64(info.GetGeneration()), stamp})>>2 | 1<<61)
}

// of returns the view of a NodeInfo, whose node has that place. The snapshot tells states that are from those that are
// only simulated: a simulation is not counted in the totals.
func (v *views) of(p *place, info fwk.NodeInfo, snapshot fwk.SharedLister) *view {
	known := p.Value.Load()
	node, claimable := info.Node(), v.claims.Latest()
	claims := claimable.Stamp(node.Name)
	stamp := v.stamp(node.Name, claims)
	if known != nil && known.generation == info.GetGeneration() && known.stamp == stamp {
		return known
	}
	fresh := &view{generation: info.GetGeneration(), stamp: stamp}
	if known != nil && stamp == 0 && known.stamp == 0 {
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
		fresh.node = claimable.Node(fresh.node)
	}
	p.Value.Store(fresh)
	if known != nil && !known.hasGPU() && !fresh.hasGPU() {
		return fresh // it has no part in the totals
	}
	if snapshot != nil && p.Index != informers.NoIndex && stamp == claims {
		if listed, err := snapshot.NodeInfos().Get(node.Name); err == nil && listed.GetGeneration() == fresh.generation {
			v.totals.set(node.Name, append([]*gpu.Inventory{fresh.inventory}, fresh.others...)...)
		}
	}
	return fresh
}

// totals keep the supply: the sum over the nodes as they were last looked at, and the pods that have come and gone.
// They are safe for concurrent use.
type totals struct {
	mu     sync.Mutex
	supply gpu.Supply
	// demand is by whose sizes places for large pods are counted.
	demand *gpu.Demand
	nodes  map[string][]counted
}

// counted is the GPUs of a node with what they contribute.
type counted struct {
	inventory *gpu.Inventory
	part      gpu.Part
}

// set counts a node as it is now, with one inventory for each resource under which it offers GPUs; without any it is
// taken out.
func (t *totals) set(node string, inventories ...*gpu.Inventory) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, before := range t.nodes[node] {
		t.supply.Replace(before.part, gpu.Part{})
	}
	now := t.nodes[node][:0]
	for _, inv := range inventories {
		if inv.HasGPU() {
			c := counted{inventory: inv, part: gpu.PartOf(inv, t.demand)}
			t.supply.Replace(gpu.Part{}, c.part)
			now = append(now, c)
		}
	}
	if len(now) == 0 {
		delete(t.nodes, node)
		return
	}
	if t.nodes == nil {
		t.nodes = map[string][]counted{}
	}
	t.nodes[node] = now
}

// came and went count the pods with GPUs that were given a node and that have left it.
func (t *totals) came() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.supply.Placed()
}

func (t *totals) went() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.supply.Departed()
}

// judge returns the judge of one request's placements by this demand.
func (t *totals) judge(s *settings, d *gpu.Demand, r *gpu.Request) *gpu.Judge {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.demand != d {
		t.demand = d
		for _, pools := range t.nodes {
			for i := range pools {
				part := gpu.PartOf(pools[i].inventory, d)
				t.supply.Replace(pools[i].part, part)
				pools[i].part = part
			}
		}
	}
	return gpu.NewJudge(s.weights, s.spread, d, &t.supply, r)
}
