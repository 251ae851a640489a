package gang

import (
	"cmp"
	"fmt"
	"slices"

	"berth.dev/berth/pkg/plural"
)

// EvictProblem asks which pods to evict so that a gang can start. A single pod is a gang of one. All of it is plain data
// that Evict does not change. Sums of the amounts of one resource must not exceed an int64.
type EvictProblem struct {
	// Priority is that of the gang. Only pods of lower priority are evicted.
	Priority int32
	// Need is the number of members that have to be placed, and Classes are the members that are not placed yet.
	Need    Minimum
	Classes []EvictClass
	// Wanted has to be free on all nodes together before the gang is placed. Nil wants nothing.
	Wanted Vector
	Nodes  []EvictNode
	// Pools are what is counted for many nodes together, such as licenses.
	Pools []EvictPool
	// Domains are the sets of nodes one of which has to hold the whole gang. Nil allows all nodes.
	Domains []EvictDomain
	Victims []Victim
	// Groups holds the groups of the victims. Members of a group that is not in it count as single pods.
	Groups map[ID]VictimGroup
	// Budgets holds, for each PodDisruptionBudget, how many evictions it allows. It is never exceeded.
	Budgets []int
}

// EvictClass is a number of members that are interchangeable for placement.
type EvictClass struct {
	Demand Vector
	Count  int
	Role   string
	// Asks is how much of each pool a member holds on a node that the pool covers.
	Asks Vector
	// Fits reports, by node, whether members may be placed on the node at all: false rules the node out for a reason that
	// no eviction changes. Nil allows all nodes.
	Fits []bool
}

// EvictNode is a node.
type EvictNode struct {
	Name string
	// Free is what is left of the node by those pods that are not about to terminate anyway. It may be negative.
	Free Vector
}

// EvictPool is an amount that members hold, wherever they are of the nodes that it covers.
type EvictPool struct {
	// Free is what is left of it by those pods that are not about to terminate anyway. It may be negative.
	Free int64
	// Covers reports, by node, whether it is held on the node. Nil covers all nodes.
	Covers []bool
}

// EvictDomain is a set of nodes. Domains of a lower rank are preferred, whatever has to be evicted there, but no pod is
// evicted if a domain of any rank has room. Of domains of one rank the one with the cheapest eviction is taken, and of
// equal ones the first.
type EvictDomain struct {
	Rank  int
	Nodes []int
}

// EvictOutcome says whether an eviction helps.
type EvictOutcome uint8

// The outcomes of Evict.
const (
	// NoRoom means that the gang cannot start even after every eviction that is allowed.
	NoRoom EvictOutcome = iota
	// RoomAlready means that the gang can start without any eviction.
	RoomAlready
	// RoomAfterEviction means that the gang can start when the victims have gone.
	RoomAfterEviction
)

// Eviction is the answer to an EvictProblem.
type Eviction struct {
	Outcome EvictOutcome
	// Reason says for NoRoom what is missing, as a clause without a full stop.
	Reason string
	// Victims are indices into EvictProblem.Victims in ascending order.
	Victims []int
	// Groups are the groups that are evicted as a whole.
	Groups []ID
	// Placed says where the members that the gang needs can be placed, by class and node. Members beyond the minimum
	// have none.
	Placed []Placement
}

// Placement is a number of members of one class that one node can hold.
type Placement struct {
	Class   int
	Node    string
	Members int
}

// Evict chooses the pods whose eviction lets the gang start. It evicts as many pods as needed or none:
//
//   - The gang reaches its minimum, or no pod is evicted.
//   - A group keeps its minimum or loses all its members. Members beyond the minimum go first.
//   - A PodDisruptionBudget is never exceeded.
//   - No unit (a pod, a surplus member, the rest of a group) is evicted without which the plan still works.
//
// Of two sets of victims the one with fewer pods of the highest priority is cheaper, then the one with fewer pods of the
// next priority, and so on; then the one with fewer units. All pods of a group that goes as a whole count with its
// highest priority. Evict takes the cheapest set that it finds, which for a few units is the cheapest there is if the
// members are all alike; see evictSearch.place and evictSearch.exact. The same problem always has the same answer,
// whatever the order of its victims.
func Evict(p *EvictProblem) Eviction {
	s := newSearch(p, exactVisits)
	if e, ok := s.answer(); ok {
		return e
	}
	return Eviction{Reason: s.reason()}
}

// answer returns the best eviction of the best domain, and false if none helps.
func (s *evictSearch) answer() (Eviction, bool) {
	ranks := s.domainsByRank()
	for _, domain := range slices.Concat(ranks...) {
		s.enter(domain)
		if s.lacking() < 0 && s.arrange(false) {
			return s.result(RoomAlready), true
		}
	}
	for _, domains := range ranks {
		var best *evictSolution
		for _, domain := range domains {
			s.enter(domain)
			if found := s.solve(); found != nil && (best == nil || compareCosts(found.cost, 1, best.cost, 1) < 0) {
				best = found
			}
		}
		if best == nil {
			continue
		}
		s.load(best)
		if len(best.gone) == 0 {
			return s.result(RoomAlready), true
		}
		return s.result(RoomAfterEviction), true
	}
	return Eviction{}, false
}

// reason says why no eviction helps.
func (s *evictSearch) reason() string {
	p := s.p
	if !slices.ContainsFunc(p.Victims, func(v Victim) bool { return v.Priority < p.Priority }) {
		return "there are no pods of lower priority"
	}
	if slices.ContainsFunc(p.Victims, func(v Victim) bool { return len(v.Budgets) > 0 }) {
		unprotected := *p
		unprotected.Budgets = slices.Repeat([]int{len(p.Victims)}, len(p.Budgets))
		if _, ok := newSearch(&unprotected, 0).answer(); ok {
			return "PodDisruptionBudgets do not allow the evictions that would make room"
		}
	}
	if len(s.units) == 0 {
		return "PodDisruptionBudgets and the minimum of gangs protect all pods of lower priority"
	}
	if need := p.Need.Members(); s.most < need {
		return fmt.Sprintf("evicting pods of lower priority makes room for %d of %s", s.most, plural.Of(need, "member"))
	}
	return "evicting pods of lower priority does not free the minimum resources"
}

// domainsByRank returns the nodes of the domains, grouped by rank.
func (s *evictSearch) domainsByRank() [][][]int {
	if s.p.Domains == nil {
		all := make([]int, len(s.p.Nodes))
		for i := range all {
			all[i] = i
		}
		return [][][]int{{all}}
	}
	sorted := slices.Clone(s.p.Domains)
	slices.SortStableFunc(sorted, func(a, b EvictDomain) int { return cmp.Compare(a.Rank, b.Rank) })
	var ranks [][][]int
	for i, d := range sorted {
		if i == 0 || d.Rank != sorted[i-1].Rank {
			ranks = append(ranks, nil)
		}
		ranks[len(ranks)-1] = append(ranks[len(ranks)-1], d.Nodes)
	}
	return ranks
}

// result describes the state of the search.
func (s *evictSearch) result(outcome EvictOutcome) Eviction {
	e := Eviction{Outcome: outcome}
	for i := range s.units {
		if !s.gone[i] {
			continue
		}
		e.Victims = append(e.Victims, s.units[i].victims...)
		if s.units[i].group != (ID{}) {
			e.Groups = append(e.Groups, s.units[i].group)
		}
	}
	slices.Sort(e.Victims)
	for c := range s.classes {
		for n, members := range s.placed[c] {
			if members > 0 {
				e.Placed = append(e.Placed, Placement{Class: c, Node: s.p.Nodes[n].Name, Members: members})
			}
		}
	}
	return e
}
