package eviction

import (
	"fmt"
	"slices"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/tree"
	"berth.dev/berth/pkg/plural"
)

// Plan is the answer to a Problem.
type Plan struct {
	// Reason says why the gang cannot start even after every eviction that is allowed, as a clause without a full stop;
	// empty if it can.
	Reason string
	// Victims are indices into Problem.Victims in ascending order; empty if the gang can start without any eviction.
	Victims []int
	// Groups are the groups that are evicted as a whole.
	Groups []gang.ID
	// Placed says where the members that the gang needs can be placed, by class and node. Members beyond the minimum
	// have none.
	Placed []Placement
	// Sets says where the members of each set can be placed, by the positions of nodes in Problem.Nodes; nil if the gang
	// is not divided.
	Sets *tree.Answer
}

// Placement is a number of members of one class that one node can hold.
type Placement struct {
	Class   int
	Node    string
	Members int
}

// Choose chooses the pods whose eviction lets the gang start. It evicts as many pods as needed or none:
//
//   - The gang reaches its minimum, or no pod is evicted.
//   - A group keeps its minimum or loses all its members. Members beyond the minimum go first.
//   - A PodDisruptionBudget is never exceeded.
//   - No unit (a pod, a spare member, a whole group) is evicted without which the plan still works.
//
// Of two sets of victims the one of the lower Cost is better. Choose takes the best set that it finds. The same problem
// always has the same answer, whatever the order of its victims.
func Choose(p *Problem) Plan {
	s := newSearch(p)
	if plan, ok := s.choose(); ok {
		return plan
	}
	return Plan{Reason: s.reason()}
}

// choose returns the best plan of the best domain, and false if none helps.
func (s *search) choose() (Plan, bool) {
	domains := s.Domains
	if domains == nil || s.Tree != nil {
		domains = [][]int{s.allNodes()}
	}
	for _, domain := range domains {
		s.enter(domain)
		if s.fit() {
			return s.plan(), true
		}
	}
	var best *solution
	for _, domain := range domains {
		s.enter(domain)
		best = cheaper(best, s.solve())
	}
	if best == nil {
		return Plan{}, false
	}
	return best.plan, true
}

// reason says why no eviction helps.
func (s *search) reason() string {
	p := s.Problem
	if !slices.ContainsFunc(p.Victims, func(v Victim) bool { return v.Priority < p.Priority }) {
		return "there are no pods of lower priority"
	}
	if slices.ContainsFunc(p.Victims, func(v Victim) bool { return len(v.Budgets) > 0 }) {
		unprotected := *p
		unprotected.Budgets = slices.Repeat([]int{len(p.Victims)}, len(p.Budgets))
		if _, ok := newSearch(&unprotected).choose(); ok {
			return "PodDisruptionBudgets do not allow the evictions that would make room"
		}
	}
	if len(s.units) == 0 {
		return "PodDisruptionBudgets and the minimum of gangs protect all pods of lower priority"
	}
	if p.Tree != nil {
		return "evicting pods of lower priority does not make room for each group or segment in a domain of its own"
	}
	return fmt.Sprintf("evicting pods of lower priority makes room for %d of %s", s.most,
		plural.Of(p.Need.Members(), "member"))
}

// allNodes are the positions of the nodes.
func (s *search) allNodes() []int {
	all := make([]int, len(s.Nodes))
	for n := range all {
		all[n] = n
	}
	return all
}

// plan describes the state of the search.
func (s *search) plan() Plan {
	plan := Plan{Sets: s.answer}
	for i := range s.units {
		if !s.gone[i] {
			continue
		}
		plan.Victims = append(plan.Victims, s.units[i].victims...)
		if s.units[i].whole {
			plan.Groups = append(plan.Groups, s.Victims[s.units[i].victims[0]].Group)
		}
	}
	slices.Sort(plan.Victims)
	for c := range s.classes {
		for _, n := range s.nodes {
			if members := s.placed[c][n]; members > 0 {
				plan.Placed = append(plan.Placed, Placement{Class: c, Node: s.Nodes[n].Name, Members: members})
			}
		}
	}
	return plan
}
