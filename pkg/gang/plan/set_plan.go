package plan

import (
	"cmp"
	"fmt"
	"slices"

	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/plan/sets"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/tree"
)

// mostLessons is how often sets get other domains because members did not fit where they should by the count of free
// capacity.
const mostLessons = 4

// homes are the domains to which members of a gang with sets are kept; empty for other gangs.
type homes struct {
	// of holds the home of each member, nodes the positions of its nodes in the part, and domains the domain of its set.
	of      map[gang.UID]int
	nodes   [][]int
	domains map[gang.UID]tree.Home
}

// arrangeSets places a gang with sets. Each set gets a domain by the count of free capacity, with as few wider domains
// as possible, and its members are placed there: first on the nodes with the best scores, and if that fails on those of
// the count. If members do not fit, the sets get other domains.
func (p *Planner) arrangeSets(w *Work, id gang.ID, levels read.Topology, demand gang.Demand,
	nodes []fwk.NodeInfo) (*Plan, error) {
	s, err := p.Divide(id, levels, demand.Need, demand.Members)
	if err != nil {
		return nil, err
	}
	best, err := p.solve(w, id, levels, demand, nodes, p.Pose(s, demand.Members, nodes))
	if err != nil {
		return nil, err
	}
	if s.Size > 0 {
		best.Segments = fmt.Sprintf("segments of %d ranks, each within one %s", s.Size, levels.Segment.Level)
	}
	best.finish(levels, demand)
	return best, nil
}

// solve places the members of the problem.
func (p *Planner) solve(w *Work, id gang.ID, levels read.Topology, demand gang.Demand, nodes []fwk.NodeInfo,
	c *sets.Problem) (*Plan, error) {
	c.Arrange(p.paths(levels, demand, nodes), len(levels.Required), p.Ledger.Nodes(id), demand.Need.Total)
	var best *Plan
	for range mostLessons {
		answer := c.Solve()
		places := c.Places(answer)
		var plans []*Plan
		for _, within := range []*sets.Problem{c, nil} {
			part, members := setPart(within, places, nodes)
			limited := demand
			limited.Members = members
			a, err := p.tryPlaces(w, id, limited, part)
			if err != nil {
				return nil, err
			}
			a.Lacking, a.keys, a.lacks = c.Lacking(answer.Placed)
			best = better(best, a)
			if plans = append(plans, a); a.Feasible() || w.spent() || !answer.Whole {
				break
			}
		}
		if len(plans) < 2 || plans[1].Feasible() || !learn(c, places, plans[0], plans[1]) {
			break
		}
	}
	return best, nil
}

// OnNodes returns all nodes with each member kept to its node, and these members.
func OnNodes(places []sets.Place, nodes []fwk.NodeInfo) (Part, []gang.Member) {
	return setPart(nil, places, nodes)
}

// aNode is the level of homes that are one node.
const aNode = tree.None - 1

// setPart returns all nodes with the homes of members, and the members, those of one home together. Homes are the
// domains of the sets in the problem, or without one the nodes of the places.
func setPart(c *sets.Problem, places []sets.Place, nodes []fwk.NodeInfo) (Part, []gang.Member) {
	h := homes{of: map[gang.UID]int{}, domains: map[gang.UID]tree.Home{}}
	index := map[tree.Home]int{}
	members := make([]gang.Member, len(places))
	for i, at := range places {
		home, within := tree.Home{Level: aNode, Domain: at.Node}, []int{at.Node}
		if c != nil {
			home = at.Home
		}
		n, known := index[home]
		if !known {
			n = len(h.nodes)
			if c != nil {
				within = c.NodesOf(home)
			}
			index[home], h.nodes = n, append(h.nodes, within)
		}
		members[i], h.of[at.UID], h.domains[at.UID] = at.Member, n, at.Home
	}
	slices.SortStableFunc(members, func(a, b gang.Member) int { return cmp.Compare(h.of[a.UID], h.of[b.UID]) })
	return Part{Nodes: nodes, homes: h}, members
}

// learn bounds how many members of a class a domain or a node takes in which not all fit that were to: by what the
// better of two plans has placed there. free chose nodes in the domains, exact kept to those of the places. It reports
// whether it has lowered a bound.
func learn(c *sets.Problem, places []sets.Place, free, exact *Plan) (lowered bool) {
	type kind struct {
		home  tree.Home
		class int
	}
	of, at, wanted := map[gang.UID]sets.Place{}, map[string]int{}, map[kind]int{}
	for _, p := range places {
		of[p.UID] = p
		wanted[kind{p.Home, p.Class}]++
		wanted[kind{tree.Home{Level: aNode, Domain: p.Node}, p.Class}]++
	}
	for i, n := range free.Nodes {
		at[n.Node().Name] = i
	}
	placed := func(a *Plan) map[kind]int {
		count := map[kind]int{}
		for _, as := range a.Assignments {
			p := of[as.UID]
			count[kind{p.Home, p.Class}]++
			count[kind{tree.Home{Level: aNode, Domain: at[as.Node]}, p.Class}]++
		}
		return count
	}
	inFree, inExact := placed(free), placed(exact)
	for k, n := range wanted {
		better := inExact
		if inFree[k] > inExact[k] {
			better = inFree
		}
		if better[k] >= n {
			continue
		}
		nodes := []int{k.home.Domain}
		if k.home.Level != aNode {
			nodes = c.NodesOf(k.home)
		}
		for _, node := range nodes {
			slots, most := c.Nodes[node].Slots, better[kind{tree.Home{Level: aNode, Domain: node}, k.class}]
			if k.class < len(slots) && slots[k.class] > most {
				slots[k.class], lowered = most, true
			}
		}
	}
	return lowered
}
