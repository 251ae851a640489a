package dryrun

import (
	"cmp"
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/ranks"
)

// Join returns to which of the nodes a member is kept that comes later, if it fits there: to those with the GPU model
// of the others, and of these to those that are near the members beside its rank. Nil if it may as well go anywhere.
func (p *Planner) Join(ctx context.Context, id gang.ID, levels gangview.Topology, pod *v1.Pod,
	nodes []fwk.NodeInfo) sets.Set[string] {
	j := joining{planner: p, ctx: ctx, id: id, levels: levels, pod: pod}
	like := j.sameModel(nodes)
	if like != nil {
		nodes = slices.DeleteFunc(slices.Clone(nodes), func(n fwk.NodeInfo) bool { return !like.Has(n.Node().Name) })
	}
	if near := j.nearRank(nodes); near != nil {
		return near
	}
	return like
}

// joining is a member that comes later.
type joining struct {
	planner *Planner
	ctx     context.Context
	id      gang.ID
	levels  gangview.Topology
	pod     *v1.Pod
}

// sameModel returns the nodes with the GPU model that the gang uses.
func (j *joining) sameModel(nodes []fwk.NodeInfo) sets.Set[string] {
	p := j.planner
	if !p.mayUseGPU(j.pod) {
		return nil
	}
	held := p.heldModels(j.id, p.Profiles.Of(j.pod).SnapshotSharedLister().NodeInfos())
	if len(held) != 1 {
		return nil
	}
	var same []fwk.NodeInfo
	for model := range held {
		for _, n := range nodes {
			if p.modelOf(n.Node()) == model {
				same = append(same, n)
			}
		}
	}
	return j.fitsOn(same, len(nodes))
}

// nearRank returns the nodes of the narrowest domain in which a member beside the pod's rank is.
func (j *joining) nearRank(nodes []fwk.NodeInfo) sets.Set[string] {
	p := j.planner
	beside := besideRanks(p.Pod, gang.Turn{Members: []gang.Member{memberOf(j.pod)}}, p.Ledger.Where(j.id))
	if len(beside) == 0 {
		return nil
	}
	network := p.Network(j.pod.Spec.SchedulerName)
	paths := make([][]string, len(nodes))
	var near [][]string
	for i, n := range nodes {
		paths[i] = rankPath(network, j.levels, n.Node())
		if beside[n.Node().Name] > 0 {
			near = append(near, paths[i])
		}
	}
	if len(near) == 0 {
		return nil
	}
	// Which node of the narrowest domain it is has no part in it: that one is last.
	for depth := len(near[0]) - 1; depth > 0; depth-- {
		var within []fwk.NodeInfo
		for i, n := range nodes {
			if slices.ContainsFunc(near, func(path []string) bool { return slices.Equal(path[:depth], paths[i][:depth]) }) {
				within = append(within, n)
			}
		}
		if len(within) == len(nodes) {
			return nil
		}
		if names := j.fitsOn(within, len(nodes)); names != nil {
			return names
		}
	}
	return nil
}

// fitsOn returns the names of the nodes if the pod fits on one of them, and if they are not all.
func (j *joining) fitsOn(nodes []fwk.NodeInfo, all int) sets.Set[string] {
	if len(nodes) == all {
		return nil
	}
	turn := gang.Turn{Members: []gang.Member{memberOf(j.pod)}, Need: gang.Minimum{Total: 1}}
	a, err := j.planner.Place(&Work{Ctx: j.ctx}, j.id, turn, Part{Nodes: nodes}, nil, nil)
	switch {
	case err != nil:
		klog.FromContext(j.ctx).V(3).Info("A member of a gang is not tried where the others are", "pod", klog.KObj(j.pod),
			"reason", err.Error())
		return nil
	case !a.Feasible():
		return nil
	}
	names := sets.New[string]()
	for _, n := range nodes {
		names.Insert(n.Node().Name)
	}
	return names
}

func memberOf(pod *v1.Pod) gang.Member {
	return gang.Member{Ref: gangview.RefOf(pod)}
}

// besideRanks returns on which nodes the members are whose ranks are next to those of members that are to be placed,
// and next to how many of these. Held are the nodes of members that have one.
func besideRanks(podOf func(gang.Ref) *v1.Pod, turn gang.Turn, held map[gang.Ref]string) map[string]int {
	if len(held) == 0 {
		return nil
	}
	var indices []ranks.Index
	var nodes []string
	add := func(ref gang.Ref, node string) {
		if pod := podOf(ref); pod != nil {
			if index, numbered := gangview.IndexOf(pod); numbered {
				indices, nodes = append(indices, index), append(nodes, node)
			}
		}
	}
	for i := range turn.Members {
		add(turn.Members[i].Ref, "")
	}
	wanted := len(indices)
	for ref, node := range held {
		add(ref, node)
	}
	if wanted == 0 || wanted == len(indices) {
		return nil
	}
	type ranked struct {
		rank int
		node string
	}
	ring := make([]ranked, len(indices))
	for i, rank := range ranks.Number(indices) {
		ring[i] = ranked{rank, nodes[i]}
	}
	slices.SortFunc(ring, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.node, b.node))
	})
	beside := map[string]int{}
	for at := range ring {
		if ring[at].node != "" {
			continue
		}
		for _, step := range []int{1, len(ring) - 1} {
			for next := (at + step) % len(ring); next != at; next = (next + step) % len(ring) {
				if node := ring[next].node; node != "" {
					beside[node]++
					break
				}
			}
		}
	}
	return beside
}
