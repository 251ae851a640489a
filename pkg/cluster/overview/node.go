package overview

import (
	"cmp"
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

// nodeView is a node with what its GPUs are compared and its price is divided by.
type nodeView struct {
	// shown does not say which GPUs are stranded: that depends on the whole cluster.
	shown Node
	// headroom has devices only if pods request the GPUs of the node, whole or in shares. Which devices of a claim are
	// stranded would be a question for the allocator.
	headroom stranded.Headroom
	// costs are the parts of the node's price by namespace of the pods.
	costs map[string]price.MicroDollars
}

// addNode adds a node to the cluster and its costs to those of the namespaces.
func (s *snapshot) addNode(c *Cluster, n *nodeEntry, costs map[string]price.MicroDollars) {
	view := s.viewOf(n)
	shown := view.shown
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
	for namespace, cost := range view.costs {
		costs[namespace] = costs[namespace].Plus(cost)
	}
	if len(shown.GPUs) == 0 {
		return
	}
	if shown.State == Ready && len(view.headroom.Devices) > 0 {
		for i, usable := range s.mix.Usable(&view.headroom) {
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

// viewOf computes what depends on the node and its pods alone.
func (s *snapshot) viewOf(n *nodeEntry) *nodeView {
	// Pods without device indices are shown on devices in this order.
	pods := slices.SortedFunc(slices.Values(n.pods), func(x, y *podEntry) int {
		return cmp.Or(x.pod.CreationTimestamp.Compare(y.pod.CreationTimestamp.Time), cmp.Compare(x.pod.UID, y.pod.UID))
	})
	info := framework.NewNodeInfo()
	for _, p := range pods {
		info.AddPodInfo(p.info)
	}
	info.SetNode(n.node)
	pods = slices.DeleteFunc(pods, func(p *podEntry) bool { return podview.BelongsToNode(p.pod) })
	free := priceview.FreeHost(info)
	view := &nodeView{shown: Node{Name: n.node.Name, Domain: s.levels.Narrowest(n.node),
		Zone: n.node.Labels[v1.LabelTopologyZone], State: stateOf(n.node), Pods: len(pods), Use: s.usesOf(pods),
		FreeCPUMilli: free.MilliCPU, FreeMemoryMiB: free.MemoryMiB}}
	view.headroom = stranded.Headroom{Node: n.node, FreeCPUMilli: free.MilliCPU,
		FreeMemoryBytes: free.MemoryMiB * bytesPerMiB}
	allocatable := s.readGPUs(view, info)
	s.readCosts(view, pods, allocatable, free)
	return view
}

// usesOf are the GPUs of the pods by workload, the largest part first.
func (s *snapshot) usesOf(pods []*podEntry) []Use {
	milli := map[string]int64{}
	for _, p := range pods {
		if p.milli > 0 {
			key := s.keyOf(p)
			milli[key.namespace+"/"+key.name] += p.milli
		}
	}
	uses := []Use{}
	for workload, n := range milli {
		uses = append(uses, Use{Workload: workload, MilliGPU: n})
	}
	slices.SortFunc(uses, func(x, y Use) int {
		return cmp.Or(-cmp.Compare(x.MilliGPU, y.MilliGPU), compareNames(x.Workload, y.Workload))
	})
	return uses
}

// readGPUs adds the GPUs of the node, and returns what is allocatable of the node.
func (s *snapshot) readGPUs(view *nodeView, info *framework.NodeInfo) price.Capacity {
	shown := &view.shown
	read, _ := s.keys.ReadGPUNode(info.Node())
	offers := priceview.ReadNode(&s.keys, info.Node())
	if sole := s.devices.Sole(read); sole != nil {
		read = sole.GPUNode(read)
		offers = offers.WithGPUs(read)
		shown.Sharing = Claims
		shown.add(sole.Inventory(s.allocated), read)
	} else {
		shown.Sharing = sharingOf(read.Empty().Mode)
		for i, pool := range read.Pools() {
			inv := s.keys.Inventory(pool, info, nil, "")
			shown.add(inv, pool)
			if i == 0 && len(read.Pools()) == 1 && !inv.TimeSliced() && inv.SlicedGPUs == 0 {
				view.headroom.Devices = inv.Devices
			}
		}
	}
	shown.Model, view.headroom.Model = read.Model(), read.Model()
	shown.sum()
	return offers.Allocatable
}

// readCosts adds the price of the node, if it is known, and divides it among the pods.
func (s *snapshot) readCosts(view *nodeView, pods []*podEntry, allocatable, free price.Capacity) {
	shown := &view.shown
	if shown.MicroDollarsPerHour, shown.Priced = s.pricing.Of(view.headroom.Node); !shown.Priced {
		return
	}
	used := price.Capacity{MilliCPU: allocatable.MilliCPU - free.MilliCPU,
		MemoryMiB: allocatable.MemoryMiB - free.MemoryMiB, MilliGPU: shown.AllocatedMilliGPU}
	split := price.NewSplit(shown.MicroDollarsPerHour, allocatable, s.pricing.Rates)
	shown.IdleMicroDollarsPerHour = shown.MicroDollarsPerHour.Minus(split.Share(used))
	view.costs = map[string]price.MicroDollars{}
	for _, p := range pods {
		cpu, memory, _ := podview.PodNeeds(p.pod)
		cost := split.Share(price.Capacity{MilliCPU: cpu, MemoryMiB: memory / bytesPerMiB, MilliGPU: p.milli})
		view.costs[p.pod.Namespace] = view.costs[p.pod.Namespace].Plus(cost)
	}
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
	// For GPUs that are cut into slices, only the number of used slices is known, not on which GPU they are.
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

// sum sets the state of each GPU and the sums of the node.
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

// compareNames orders names by their number at the end: node-9 before node-10.
func compareNames(x, y string) int {
	a, b := strings.TrimRight(x, "0123456789"), strings.TrimRight(y, "0123456789")
	if a != b {
		return cmp.Compare(x, y)
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
}
