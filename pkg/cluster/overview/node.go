package overview

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/cluster/stranded"
	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/cost/priceview"
	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/podview"
)

const bytesPerMiB = 1 << 20

// nodeView is what is worked out of a node when it or a pod on it changes.
type nodeView struct {
	// shown is without what is stranded, which depends on the whole cluster.
	shown Node
	// room is what is left of GPUs that pods request, whole or in shares; only of these can it be said that they are
	// stranded. Which devices a claim could get is the allocator's to say.
	room stranded.Room
	// costs is what the pods of each namespace pay of its price.
	costs map[string]price.MicroDollars
}

// addNode adds a node to the answer, and what the pods on it cost to that of their namespaces.
func (b *Book) addNode(c *Cluster, n *nodeEntry, costs map[string]price.MicroDollars) {
	if n.view == nil {
		n.view = b.viewOf(n)
	}
	shown := n.view.shown
	t := &c.Totals
	t.Nodes++
	if shown.Pods > 0 {
		t.NodesInUse++
	}
	if !shown.Priced {
		t.NodesWithoutPrice++
	}
	t.MicroDollarsPerHour = t.MicroDollarsPerHour.Plus(shown.MicroDollarsPerHour)
	t.IdleMicroDollarsPerHour = t.IdleMicroDollarsPerHour.Plus(shown.IdleMicroDollarsPerHour)
	for namespace, cost := range n.view.costs {
		costs[namespace] = costs[namespace].Plus(cost)
	}
	if len(shown.GPUs) == 0 {
		return
	}
	if shown.State == Ready && len(n.view.room.Devices) > 0 {
		shown.GPUs = slices.Clone(shown.GPUs)
		for i, usable := range b.kinds.Usable(&n.view.room) {
			if g := &shown.GPUs[i]; !usable && (g.State == Free || g.State == Partial) {
				g.State = Stranded
				shown.StrandedMilliGPU += int64(gpu.WholeMilli - g.UsedMilliGPU)
			}
		}
	}
	t.NodesWithGPUs++
	t.GPUs += len(shown.GPUs)
	for _, g := range shown.GPUs {
		if g.State == Unavailable {
			t.UnavailableGPUs++
		}
	}
	t.AllocatedMilliGPU += shown.AllocatedMilliGPU
	t.IdleMilliGPU += shown.IdleMilliGPU
	t.StrandedMilliGPU += shown.StrandedMilliGPU
	c.Nodes = append(c.Nodes, shown)
}

// viewOf works out what depends on the node and its pods alone.
func (b *Book) viewOf(n *nodeEntry) *nodeView {
	// The order decides which devices pods without an index are shown on.
	pods := slices.SortedFunc(maps.Values(n.pods), func(x, y *podEntry) int {
		return cmp.Or(x.pod.CreationTimestamp.Compare(y.pod.CreationTimestamp.Time), cmp.Compare(x.pod.UID, y.pod.UID))
	})
	info := framework.NewNodeInfo()
	for _, p := range pods {
		info.AddPod(p.pod)
	}
	info.SetNode(n.node)
	view := &nodeView{shown: Node{Name: n.node.Name, Domain: b.levels.Narrowest(n.node),
		Zone: n.node.Labels[v1.LabelTopologyZone], State: stateOf(n.node)}}
	shown := &view.shown
	uses := map[string]int64{}
	for _, p := range pods {
		if podview.BelongsToNode(p.pod) {
			continue
		}
		shown.Pods++
		if p.milli > 0 {
			key := b.keyOf(p)
			uses[key.namespace+"/"+key.name] += p.milli
		}
	}
	shown.Use = []Use{}
	for workload, milli := range uses {
		shown.Use = append(shown.Use, Use{Workload: workload, MilliGPU: milli})
	}
	slices.SortFunc(shown.Use, func(x, y Use) int {
		return cmp.Or(-cmp.Compare(x.MilliGPU, y.MilliGPU), compareNames(x.Workload, y.Workload))
	})
	free := priceview.FreeHost(info)
	shown.FreeCPUMilli, shown.FreeMemoryMiB = free.MilliCPU, free.MemoryMiB

	read, _ := b.keys.ReadGPUNode(n.node)
	offers := priceview.ReadNode(&b.keys, n.node)
	if sole := b.Devices.Sole(read); sole != nil {
		read = sole.GPUNode(read)
		offers = offers.WithGPUs(read)
		shown.Sharing = Claims
		shown.add(sole.Inventory(b.Allocated), read)
	} else {
		shown.Sharing = sharingOf(read.Empty().Mode)
		for i, pool := range read.Pools() {
			inv := b.keys.Inventory(pool, info, nil, "")
			shown.add(inv, pool)
			if i == 0 && len(read.Pools()) == 1 && !inv.TimeSliced() && inv.SlicedGPUs == 0 {
				view.room.Devices = inv.Devices
			}
		}
	}
	shown.Model = read.Model()
	view.room.Node, view.room.Model = n.node, read.Model()
	view.room.FreeCPUMilli, view.room.FreeMemoryBytes = free.MilliCPU, free.MemoryMiB*bytesPerMiB
	shown.sum()
	if shown.MicroDollarsPerHour, shown.Priced = b.pricing.Of(n.node); shown.Priced {
		used := price.Capacity{MilliCPU: offers.Allocatable.MilliCPU - free.MilliCPU,
			MemoryMiB: offers.Allocatable.MemoryMiB - free.MemoryMiB, MilliGPU: shown.AllocatedMilliGPU}
		split := price.NewSplit(shown.MicroDollarsPerHour, offers.Allocatable, b.pricing.Rates)
		shown.IdleMicroDollarsPerHour = shown.MicroDollarsPerHour.Minus(split.Share(used))
		view.costs = map[string]price.MicroDollars{}
		for _, p := range pods {
			if !podview.BelongsToNode(p.pod) {
				cpu, memory, _ := podview.PodNeeds(p.pod)
				cost := split.Share(price.Capacity{MilliCPU: cpu, MemoryMiB: memory / bytesPerMiB, MilliGPU: p.milli})
				view.costs[p.pod.Namespace] = view.costs[p.pod.Namespace].Plus(cost)
			}
		}
	}
	return view
}

// add adds the GPUs of one pool.
func (n *Node) add(inv *gpu.Inventory, pool *gpuview.Node) {
	used := 0
	if inv.TimeSliced() {
		used = (pool.Empty().FreeReplicas - inv.FreeReplicas) * gpu.WholeMilli / inv.Replicas
	}
	for _, d := range inv.Devices {
		g := GPU{UsedMilliGPU: gpu.WholeMilli - d.FreeMilli}
		if inv.TimeSliced() {
			g.UsedMilliGPU = min(used, gpu.WholeMilli)
			used -= g.UsedMilliGPU
		}
		if d.Unhealthy {
			g.State = Unavailable
		}
		n.GPUs = append(n.GPUs, g)
	}
	// Of GPUs that are cut into slices the number of slices that are taken is known, but not their GPUs.
	all := pool.Empty().FreeSlicedMilli()
	if all > 0 {
		used = (all - inv.FreeSlicedMilli()) * inv.SlicedGPUs * gpu.WholeMilli / all
	}
	for range inv.SlicedGPUs {
		g := GPU{UsedMilliGPU: min(used, gpu.WholeMilli)}
		used -= g.UsedMilliGPU
		n.GPUs = append(n.GPUs, g)
	}
}

// sum gives each GPU its state, and adds up.
func (n *Node) sum() {
	for i := range n.GPUs {
		g := &n.GPUs[i]
		g.UsedMilliGPU = min(max(g.UsedMilliGPU, 0), gpu.WholeMilli)
		idle := gpu.WholeMilli - g.UsedMilliGPU
		n.AllocatedMilliGPU += int64(g.UsedMilliGPU)
		switch {
		case g.State == Unavailable:
		case idle == 0:
			g.State = Allocated
		case n.State != Ready:
			g.State = Unavailable
		default:
			g.State = Free
			if g.UsedMilliGPU > 0 {
				g.State = Partial
			}
			n.IdleMilliGPU += int64(idle)
		}
	}
}

func stateOf(node *v1.Node) NodeState {
	for _, c := range node.Status.Conditions {
		if c.Type == v1.NodeReady && c.Status != v1.ConditionTrue {
			return NotReady
		}
	}
	switch {
	case podview.Leaving(node):
		return Leaving
	case node.Spec.Unschedulable:
		return Cordoned
	}
	return Ready
}

func sharingOf(mode gpu.Mode) Sharing {
	switch mode {
	case gpu.ModeShared:
		return Shared
	case gpu.ModeDRA:
		return Claims
	}
	return DevicePlugin
}

// compareNames orders names so that node-10 comes behind node-9.
func compareNames(x, y string) int {
	a, b := strings.TrimRight(x, "0123456789"), strings.TrimRight(y, "0123456789")
	if a != b {
		return cmp.Compare(x, y)
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
}
