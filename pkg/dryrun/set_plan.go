package dryrun

import (
	"cmp"
	"fmt"
	"slices"

	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/dryrun/sets"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/tree"
)

// mostLessons is how often sets get other domains because members did not fit where they should by the account.
const mostLessons = 4

// homes are the nodes on which members of a gang with sets are placed.
type homes struct {
	// of holds the home of each member, nodes the positions of its nodes in the part, and domains the domain of its set.
	of      map[gang.UID]int
	nodes   [][]int
	domains map[gang.UID]int
}

// home returns the home of a member, and its zero value without sets.
func (h *homes) home(uid gang.UID) int {
	if h == nil {
		return 0
	}
	return h.of[uid]
}

// domain tells the members of a set from others by where they may be.
func (h *homes) domain(uid gang.UID) int {
	if h == nil {
		return 0
	}
	return h.domains[uid]
}

// Sets divides gangs into groups and segments.
func (s *Sources) Sets() *sets.Divider {
	return &sets.Divider{Ledger: s.Ledger, Pod: s.Pod, PodGroup: s.PodGroup, Capacity: s.Capacity}
}

// arrangeSets places a gang with sets: each set gets a domain by the account of what is free, as few of the wider
// domains as possible, and its members are placed there. First the scores of the profile say on which nodes, and if
// that fails the account does. Where members do not fit, the sets are given domains again.
func (p *Planner) arrangeSets(w *Work, id gang.ID, levels gangview.Topology, turn gang.Turn,
	nodes []fwk.NodeInfo) (*Plan, error) {
	divider := p.Sets()
	s, err := divider.Divide(id, levels, turn.Need, turn.Members)
	if err != nil {
		return nil, err
	}
	c := divider.Pose(s, turn.Members, nodes)
	c.Arrange(p.paths(levels, turn, nodes), len(levels.Required), p.Ledger.Nodes(id), turn.Need.Total)
	var tried attempts
	for range mostLessons {
		answer := c.Solve()
		var plans []*Plan
		for _, exact := range []bool{false, true} {
			part, members := setPart(c, answer, exact, nodes)
			limited := turn
			limited.Members = members
			a, err := p.tryPlaces(w, id, limited, part)
			if err != nil {
				return nil, err
			}
			a.Lacking, a.keys, a.lacks = c.Lacking(answer.Placed)
			tried.add(a)
			if plans = append(plans, a); a.Feasible() || w.spent() || !answer.Whole {
				break
			}
		}
		if len(plans) < 2 || plans[1].Feasible() || !learn(c, answer, plans[0], plans[1]) {
			break
		}
	}
	if s.Size > 0 {
		tried.best.Segments = fmt.Sprintf("segments of %d ranks, each within one %s", s.Size, levels.Segment.Level)
	}
	tried.best.finish(levels, turn)
	return tried.best, nil
}

// OnNodes returns all nodes with each member of the answer kept to its node, and these members.
func OnNodes(c *sets.Problem, answer *tree.Answer, nodes []fwk.NodeInfo) (Part, []gang.Member) {
	return setPart(c, answer, true, nodes)
}

// setPart returns all nodes with the homes of members, and the members that have one, those of one home together. With
// exact they are kept to the nodes that the answer gives them.
func setPart(c *sets.Problem, answer *tree.Answer, exact bool, nodes []fwk.NodeInfo) (Part, []gang.Member) {
	h := &homes{of: map[gang.UID]int{}, domains: map[gang.UID]int{}}
	index := map[tree.Home]int{}
	byNode := map[int]int{}
	places := c.Places(answer)
	members := make([]gang.Member, len(places))
	for i, at := range places {
		members[i] = at.Member
		domain, known := index[at.Home]
		if !known {
			domain = len(h.nodes)
			index[at.Home] = domain
			h.nodes = append(h.nodes, c.NodesOf(at.Home))
		}
		h.of[at.UID], h.domains[at.UID] = domain, domain
		if !exact {
			continue
		}
		home, known := byNode[at.Node]
		if !known {
			home = len(h.nodes)
			byNode[at.Node] = home
			h.nodes = append(h.nodes, []int{at.Node})
		}
		h.of[at.UID] = home
	}
	slices.SortStableFunc(members, func(a, b gang.Member) int { return cmp.Compare(h.of[a.UID], h.of[b.UID]) })
	return Part{Nodes: nodes, homes: h}, members
}

// learn notes how many members a domain and a node take where not all of those that they were to take fit, and reports
// whether there was anything to learn. free is the plan that chose nodes in the domains, exact that on the nodes of the
// answer.
func learn(c *sets.Problem, answer *tree.Answer, free, exact *Plan) bool {
	type kind struct {
		home        tree.Home
		node, class int
	}
	inFree, inExact := placedBy(free), placedBy(exact)
	wanted, fitsFree, fitsExact := map[kind]int{}, map[kind]int{}, map[kind]int{}
	for _, at := range c.Places(answer) {
		for _, k := range []kind{{at.Home, tree.None, at.Class}, {tree.Home{}, at.Node, at.Class}} {
			wanted[k]++
			if inFree[at.UID] {
				fitsFree[k]++
			}
			if inExact[at.UID] {
				fitsExact[k]++
			}
		}
	}
	news := false
	for k, n := range wanted {
		switch {
		case k.node != tree.None && fitsExact[k] < n && k.class < len(c.Nodes[k.node].Slots):
			c.Nodes[k.node].Slots[k.class], news = fitsExact[k], true
		case k.node == tree.None && max(fitsFree[k], fitsExact[k]) < n:
			c.Cap(k.home, k.class, max(fitsFree[k], fitsExact[k]))
			news = true
		}
	}
	return news
}

func placedBy(a *Plan) map[gang.UID]bool {
	placed := make(map[gang.UID]bool, len(a.Assignments))
	for _, as := range a.Assignments {
		placed[as.UID] = true
	}
	return placed
}
