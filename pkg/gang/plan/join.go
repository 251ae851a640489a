package plan

import (
	"cmp"
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/ranks"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/read/numbering"
)

// Joined is where a member of a started gang may go.
type Joined struct {
	// Nodes are the allowed nodes, nil for any. Why explains the restriction.
	Nodes sets.Set[string]
	Why   string
	// Rest is the places of the other members that complete its group or segment.
	Rest []PlacedPod
}

// Join returns where a member of a started gang may go. A dry run places the whole group or segment that begins or
// lacks members. If it fits, the member goes to its node in that plan; otherwise a group or segment does not begin.
func (p *Planner) Join(ctx context.Context, id gang.ID, pod *v1.Pod, nodes []fwk.NodeInfo) (*Joined, error) {
	levels, err := p.Members.Topology(id, pod)
	if err != nil {
		return nil, err
	}
	j, err := p.Divider.Join(id, levels, pod, nodes)
	if err != nil {
		return nil, err
	}
	joined := &Joined{Why: j.Why}
	if j.Rest != nil && (!j.Begins || j.Rest.Least() != nil) { // if it fits by the account at all
		a, err := p.solve(&Work{Ctx: ctx, bounded: true}, id, levels, j.Demand, nodes, j.Rest)
		if err != nil {
			return nil, err
		}
		own := slices.IndexFunc(a.Assignments, func(a gang.Assignment) bool { return a.UID == gang.UID(pod.UID) })
		if a.Feasible() && own >= 0 {
			joined.Nodes = sets.New(a.Assignments[own].Node)
			joined.Rest = slices.DeleteFunc(a.placed, func(p PlacedPod) bool { return p.Info.GetPod().UID == pod.UID })
			return joined, nil
		}
	}
	if j.Begins {
		joined.Nodes = sets.New[string]()
		return joined, nil
	}
	if joined.Nodes = p.near(ctx, id, levels, pod, j.Nodes); joined.Nodes == nil && j.Why != "" {
		joined.Nodes = sets.New[string]()
		for _, n := range j.Nodes {
			joined.Nodes.Insert(n.Node().Name)
		}
	}
	return joined, nil
}

// near returns the nodes to which a member of a started gang is kept if it fits there: nodes with the GPU model of the
// others, and among these the nearest to the members beside its rank. Nil allows any node.
func (p *Planner) near(ctx context.Context, id gang.ID, levels read.Topology, pod *v1.Pod,
	nodes []fwk.NodeInfo) sets.Set[string] {
	far := p.distances(id, levels, pod, nodes)
	demand := gang.Demand{Members: []gang.Member{memberOf(pod)}, Need: gang.Minimum{Total: 1}}
	for _, most := range slices.Compact(slices.Sorted(slices.Values(far))) {
		var within []fwk.NodeInfo
		names := sets.New[string]()
		for i, n := range nodes {
			if far[i] <= most {
				within = append(within, n)
				names.Insert(n.Node().Name)
			}
		}
		if len(within) == len(nodes) {
			break
		}
		a, err := p.Place(&Work{Ctx: ctx}, id, demand, Part{Nodes: within}, nil, nil)
		switch {
		case err != nil:
			klog.FromContext(ctx).V(3).Info("A member of a gang is not tried where the others are", "pod", klog.KObj(pod),
				"reason", err.Error())
		case a.Feasible():
			return names
		}
	}
	return nil
}

// distances ranks nodes for a member of a started gang, the best lowest: by the GPU model of the gang first, then by
// the number of levels that they share with a member beside the pod's rank.
func (p *Planner) distances(id gang.ID, levels read.Topology, pod *v1.Pod, nodes []fwk.NodeInfo) []int {
	far, paths := make([]int, len(nodes)), make([][]string, len(nodes))
	beside := p.besideRanks([]gang.Member{memberOf(pod)}, p.Ledger.Where(id))
	network := p.Networks.Levels(pod.Spec.SchedulerName)
	var near [][]string
	for i, n := range nodes {
		if len(beside) == 0 {
			break
		}
		// The last entry of the path, the node itself, does not count.
		path := rankPath(network, levels, n.Node())
		if paths[i] = path[:len(path)-1]; beside[n.Node().Name] > 0 {
			near = append(near, paths[i])
		}
	}
	var held map[string]int
	if p.mayUseGPU(pod) {
		held = p.heldModels(id, p.Profiles.Of(pod).SnapshotSharedLister().NodeInfos())
	}
	for i, n := range nodes {
		shared := 0
		for _, path := range near {
			shared = max(shared, ranks.Shared(path, paths[i]))
		}
		if far[i] = -shared; len(held) == 1 && held[p.modelOf(n.Node())] == 0 {
			far[i] += maxLevels
		}
	}
	return far
}

// maxLevels is more levels than there are.
const maxLevels = 100

func memberOf(pod *v1.Pod) gang.Member {
	return gang.Member{Ref: read.RefOf(pod)}
}

// besideRanks counts by node the members to be placed whose rank is next to that of a member on the node. held is the
// node of each member that has one.
func (s *Sources) besideRanks(members []gang.Member, held map[gang.Ref]string) map[string]int {
	if len(held) == 0 {
		return nil
	}
	var indices []ranks.Index
	var nodes []string
	add := func(ref gang.Ref, node string) {
		if pod := s.Members.Pod(ref); pod != nil {
			if index, numbered := numbering.IndexOf(pod); numbered {
				indices, nodes = append(indices, index), append(nodes, node)
			}
		}
	}
	for i := range members {
		add(members[i].Ref, "")
	}
	wanted := len(indices)
	for ref, node := range held {
		add(ref, node)
	}
	if wanted == 0 || wanted == len(indices) {
		return nil
	}
	order := ranks.Number(indices)
	ring := make([]int, len(indices))
	for i := range ring {
		ring[i] = i
	}
	slices.SortFunc(ring, func(a, b int) int {
		return cmp.Or(cmp.Compare(order[a], order[b]), cmp.Compare(nodes[a], nodes[b]))
	})
	beside := map[string]int{}
	for range 2 {
		last := ""
		for at, i := range slices.Concat(ring, ring) {
			switch {
			case nodes[i] != "":
				last = nodes[i]
			case at >= len(ring):
				beside[last]++
			}
		}
		slices.Reverse(ring)
	}
	return beside
}
