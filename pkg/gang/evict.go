package gang

import (
	"cmp"
	"fmt"
	"slices"
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

// EvictDomain is a set of nodes. Domains of a lower rank are preferred, whatever has to be evicted there. Of domains of
// one rank the one with the cheapest eviction is taken, and of equal ones the first.
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
//   - The gang reaches its minimum, or nobody is evicted.
//   - A group keeps its minimum or loses all its members. Members beyond the minimum go first.
//   - A PodDisruptionBudget is never exceeded.
//   - No unit (a pod, a surplus member, the rest of a group) is evicted without which the plan still works.
//
// Of two sets of victims the one with fewer pods of the highest priority is cheaper, then the one with fewer pods of the
// next priority, and so on; then the one with fewer units. All pods of a group that goes as a whole count with its highest
// priority. Evict takes the cheapest set that it finds, which for a few units is the cheapest there is; see search.place
// for how it looks for it. The same problem always has the same answer.
func Evict(p *EvictProblem) Eviction { return evict(p, exactVisits) }

func evict(p *EvictProblem, visits int) Eviction {
	s := newSearch(p, visits)
	ranks := s.domainsByRank()
	for _, domain := range slices.Concat(ranks...) {
		s.enter(domain)
		if s.arrange(false) && s.lacking() < 0 {
			return s.result(RoomAlready)
		}
	}
	if len(s.units) == 0 {
		return Eviction{Reason: "there is no pod of lower priority that may be evicted"}
	}
	for _, domains := range ranks {
		var found *solution
		for _, domain := range domains {
			s.enter(domain)
			if solved := s.solve(); solved != nil && (found == nil || compareCosts(solved.cost, 1, found.cost, 1) < 0) {
				found = solved
			}
		}
		if found == nil {
			continue
		}
		s.load(found)
		if len(found.gone) == 0 {
			return s.result(RoomAlready)
		}
		return s.result(RoomAfterEviction)
	}
	if s.most < p.Need.Members() {
		return Eviction{Reason: fmt.Sprintf("evicting all pods of lower priority that may be evicted makes room for %d of %d members", s.most, p.Need.Members())}
	}
	return Eviction{Reason: "evicting all pods of lower priority that may be evicted does not free the minimum resources"}
}

// domainsByRank returns the nodes of the domains, grouped by rank.
func (s *search) domainsByRank() [][][]int {
	if s.p.Domains == nil {
		all := make([]int, len(s.p.Nodes))
		for i := range all {
			all[i] = i
		}
		return [][][]int{{all}}
	}
	sorted := slices.SortedStableFunc(slices.Values(s.p.Domains), func(a, b EvictDomain) int { return cmp.Compare(a.Rank, b.Rank) })
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
func (s *search) result(outcome EvictOutcome) Eviction {
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
