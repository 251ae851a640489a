package coscheduling

import (
	"context"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/topology"
)

// arrangement is a plan for a gang, or for as much of it as fits.
type arrangement struct {
	gang.Result
	*dryRun
	// within names the level that all members have to share, or is empty.
	within string
	// ordered is set if members have to reserve in the order of the plan.
	ordered bool
	// mixed says which GPU models the members are on, if they are on several although they should not be.
	mixed string
}

// part is a set of nodes on which to try a gang.
type part struct {
	nodes []fwk.NodeInfo
	// ranks holds by node the place of its domain in the order in which domains are to be filled; nil if that does not matter.
	ranks []int
	// only keeps classes on nodes with GPUs of some model; nil if they may go anywhere.
	only *modelLimits
}

// arrange places the gang on nodes in a dry run, on GPUs of one model where that is possible.
func (c *coordinator) arrange(w *work, id gang.ID, turn gang.Turn, nodes []fwk.NodeInfo) (*arrangement, error) {
	levels, err := c.topology(id, c.pods.pod(turn.Members[0].Ref()))
	if err != nil {
		return nil, err
	}
	best, err := c.arrangeOn(w, id, levels, turn, nodes, nil)
	if err != nil || levels.MixedModels || !best.Feasible() {
		return best, err
	}
	return c.unify(w, id, levels, turn, nodes, best)
}

// arrangeOn places the gang on nodes in a dry run, within one domain of each level that it requires and spread over as few
// domains as possible of those that it prefers, or else of those of the network. Classes are kept on the models that only gives
// them.
func (c *coordinator) arrangeOn(
	w *work, id gang.ID, levels gangview.Topology, turn gang.Turn, nodes []fwk.NodeInfo, only *modelLimits,
) (*arrangement, error) {
	var best *arrangement
	examined := 0
	for _, part := range c.parts(id, levels, turn, nodes, only) {
		a, err := c.tryPlaces(w, id, turn, part)
		if err != nil {
			return nil, err
		}
		examined += a.examined
		if best == nil || a.Feasible() || len(a.Assignments) > len(best.Assignments) {
			best = a
		}
		best.examined = examined
		if a.Feasible() || w.spent() {
			break
		}
	}
	if len(levels.Required) > 0 {
		best.within = levels.Required[len(levels.Required)-1]
	}
	best.ordered = slices.ContainsFunc(turn.Members, func(m gang.Member) bool {
		r := best.classes[m.Class]
		return orderMatters(r.profile, r.pod)
	})
	return best, nil
}

// fewPlaces is in how many places a gang is tried whose first member decides where the others have to go.
const fewPlaces = 16

// tryPlaces places the gang on one set of nodes. Where the first member goes that uses a claim that members share, or that others
// have an affinity to, its siblings have to follow: if they do not fit there, they are tried elsewhere.
func (c *coordinator) tryPlaces(w *work, id gang.ID, turn gang.Turn, on part) (*arrangement, error) {
	var best *arrangement
	refused := map[gang.Refusal]bool{}
	examined := 0
	for range fewPlaces {
		a, err := c.try(w, id, turn, on, refused, nil)
		if err != nil {
			return nil, err
		}
		examined += a.examined
		if best == nil || a.Feasible() || len(a.Assignments) > len(best.Assignments) {
			best = a
		}
		if a.Feasible() || len(a.Assignments) == 0 || !a.follows() || w.spent() {
			break
		}
		for _, placed := range a.Assignments {
			// Without a class it is refused to all.
			refused[gang.Refusal{Node: placed.Node}] = true
		}
	}
	best.examined = examined
	return best, nil
}

// follows reports whether where members go depends on where the first of them went.
func (a *arrangement) follows() bool {
	if slices.ContainsFunc(a.Assignments, func(placed gang.Assignment) bool { return placed.First }) {
		return true
	}
	for _, r := range a.classes {
		if f := r.pod.Spec.Affinity; f != nil && f.PodAffinity != nil && len(f.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
			return true
		}
	}
	return false
}

// try places the gang on one set of nodes, but for those refused to a class.
func (c *coordinator) try(w *work, id gang.ID, turn gang.Turn, on part, refused map[gang.Refusal]bool, prepare func(*dryRun) error) (*arrangement, error) {
	var last *dryRun
	finish := func() {
		if last != nil {
			last.close()
		}
	}
	defer finish()
	open := func() (*dryRun, error) {
		finish()
		d, err := c.newDryRun(w, id, turn.Members, on)
		if err != nil {
			return nil, err
		}
		last = d
		maps.Copy(d.refused, refused)
		if prepare != nil {
			return d, prepare(d)
		}
		return d, nil
	}
	first, err := open()
	if err != nil {
		return nil, err
	}
	result, d, err := gang.Build(turn.Members, turn.Need, first.hardness, func() (*dryRun, error) {
		if d := first; d != nil {
			first = nil
			return d, nil
		}
		return open()
	})
	for err == nil && len(last.displaced) > 0 && d == last {
		moved := last.displaced
		last.displaced = map[gang.UID]bool{}
		err = result.Replace(turn.Members, moved, d)
	}
	if err != nil {
		return nil, err
	}
	return &arrangement{Result: result, dryRun: d}, nil
}

// topology returns the levels that the gang asks for.
func (c *coordinator) topology(id gang.ID, pod *v1.Pod) (gangview.Topology, error) {
	if pod == nil {
		pod = &v1.Pod{}
	}
	return gangview.TopologyOf(c.groups.get(id), pod)
}

// parts returns the sets of nodes on which to try the gang, in order; at least one. What the nodes have free by the rough
// account rules out domains before any of their nodes is looked at.
func (c *coordinator) parts(id gang.ID, levels gangview.Topology, turn gang.Turn, nodes []fwk.NodeInfo, only *modelLimits) []part {
	paths := c.paths(levels, turn, nodes)
	if paths == nil {
		return []part{{nodes: nodes, only: only}}
	}
	tree := make([]topology.Node, len(nodes))
	index := make(map[string]int, len(nodes))
	held := c.ledger.Nodes(id)
	for i, n := range nodes {
		name := n.Node().Name
		index[name] = i
		tree[i] = topology.Node{Path: paths[i], Held: held[name]}
	}
	demand := topology.Demand{Need: turn.Need.Total}
	classes := map[string]int{}
	var pods []*v1.Pod
	left := 0
	for _, m := range turn.Members {
		if at, known := classes[m.Class]; known {
			demand.Want[at]++
			continue
		}
		pod := c.pods.pod(m.Ref())
		if pod == nil {
			continue
		}
		if len(pods) == manyClasses {
			// Too many are not asked about: those that are have to fit without the others.
			left++
			continue
		}
		at := len(demand.Want)
		classes[m.Class] = at
		demand.Want, pods = append(demand.Want, 1), append(pods, pod)
		for i := range tree {
			tree[i].Slots = append(tree[i].Slots, 0)
		}
		key := c.headroom.acquire(pod)
		c.headroom.each(key, func(node *v1.Node, now, _ int) {
			if i, here := index[node.Name]; here && only.allow(m.Class, node) {
				tree[i].Slots[at] = now
			}
		})
		c.headroom.release(key)
	}
	demand.Need = max(demand.Need-left, 0)
	c.place(tree, nodes, pods, demand.Want)
	var parts []part
	for _, a := range topology.Arrange(tree, len(levels.Required), demand) {
		p := part{only: only}
		for rank, set := range a.Sets {
			for _, i := range set {
				p.nodes = append(p.nodes, nodes[i])
				p.ranks = append(p.ranks, rank)
			}
		}
		parts = append(parts, p)
	}
	if len(parts) == 0 {
		parts = append(parts, part{})
	}
	return parts
}

// join lets a member of a gang that has started go anywhere, or into the domain of the others if they have to share one.
func (p *Plugin) join(ctx context.Context, state fwk.CycleState, id gang.ID, pod *v1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	c := p.shared
	levels, err := c.topology(id, pod)
	if err != nil {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	held := c.ledger.Nodes(id)
	if len(held) == 0 {
		return p.open()
	}
	if len(levels.Required) == 0 {
		if names := c.joinModel(ctx, id, levels, pod, nodes); names != nil {
			return confine(state, names)
		}
		return p.open()
	}
	domain := func(n *v1.Node) string {
		path := ""
		for _, key := range levels.Required {
			path += n.Labels[key] + "\x00"
		}
		return path
	}
	count := map[string]int{}
	most := ""
	for _, n := range nodes {
		if here := held[n.Node().Name]; here > 0 {
			d := domain(n.Node())
			if count[d] += here; most == "" || count[d] > count[most] {
				most = d
			}
		}
	}
	if most == "" {
		return p.open()
	}
	var within []fwk.NodeInfo
	names := sets.New[string]()
	for _, n := range nodes {
		if domain(n.Node()) == most {
			within = append(within, n)
			names.Insert(n.Node().Name)
		}
	}
	if like := c.joinModel(ctx, id, levels, pod, within); like != nil {
		names = like
	}
	result, status := confine(state, names)
	state.Write(nodesKey, nodeSet{Set: names, why: tiedTo(levels.Required, within[0].Node())})
	return result, status
}

// tiedTo says where a pod has to be because the other members of its gang are there.
func tiedTo(keys []string, example *v1.Node) string {
	domains := make([]string, len(keys))
	for i, key := range keys {
		domains[i] = key + "=" + example.Labels[key]
	}
	return "the other members of the gang are on nodes with " + strings.Join(domains, ", ") + ", and this one has to be there, too"
}
