package plan

import (
	"slices"

	"berth.dev/berth/pkg/gang"
)

// mostOrders bounds the orders in which classes are tried, at the cost of a dry run each.
const mostOrders = 6

// order is how the members are tried: of first the number that the minimum of their role needs, then all others as in
// rest.
type order struct{ first, rest []gang.Member }

// orders gives the orders in which to try the members of some classes, each class in a row. In the first order the
// hardest class goes first, because what fits almost nowhere must choose before what fits almost everywhere. If too few
// members find a node, the next orders begin with what the roles need, with the easiest class, which places the most,
// with the classes left over before (Joslin and Clements, Squeaky Wheel Optimization, JAIR 10, 1999), and then with
// each class in turn.
type orders struct {
	// classes are those of the members, the hardest first.
	classes [][]gang.Member
	roles   bool
	// short are the classes with members that were left over in the last order.
	short []Shortage
}

func (o *orders) all(yield func(order) bool) {
	easiest := slices.Clone(o.classes)
	slices.Reverse(easiest)
	rows := func(first, rest [][]gang.Member) order {
		return order{first: slices.Concat(first...), rest: slices.Concat(rest...)}
	}
	if len(o.classes) <= 1 {
		yield(rows(o.classes, o.classes))
		return
	}
	if !yield(rows(nil, o.classes)) {
		return
	}
	learnt := ahead(o.classes, func(class []gang.Member) bool {
		return slices.ContainsFunc(o.short, func(s Shortage) bool { return s.Class == class[0].Class })
	})
	if o.roles && !yield(rows(o.classes, easiest)) || !yield(rows(easiest, easiest)) || !yield(rows(learnt, learnt)) {
		return
	}
	for _, first := range o.classes[1:] {
		row := ahead(easiest, func(class []gang.Member) bool { return class[0].Class == first[0].Class })
		if !yield(rows(row, row)) {
			return
		}
	}
}

// ahead returns the classes with those first for which goes holds.
func ahead(classes [][]gang.Member, goes func(class []gang.Member) bool) [][]gang.Member {
	var first, rest [][]gang.Member
	for _, class := range classes {
		if goes(class) {
			first = append(first, class)
		} else {
			rest = append(rest, class)
		}
	}
	return append(first, rest...)
}

// board is a dry run on which members are placed one after the other.
type board interface {
	// Place places the member on the node that is best for it now, given all that were placed before. ok is false if
	// there is none.
	Place(m gang.Member) (a gang.Assignment, ok bool, err error)
	// Spent reports whether the work budget of the plan is used up.
	Spent() bool
}

// place places members on the board, all that fit, and reports whether they are enough.
func (o order) place(need gang.Minimum, on board) (r Result, enough bool, err error) {
	roles, tried, at := map[string]int{}, map[gang.UID]bool{}, map[string]int{}
	met := func() bool { return need.MetBy(len(r.Assignments), func(role string) int { return roles[role] }) }
	for i, m := range slices.Concat(o.first, o.rest) {
		if tried[m.UID] || i < len(o.first) && roles[m.Role] >= need.Roles[m.Role] {
			continue
		}
		if on.Spent() && (met() || len(r.Assignments)+len(o.rest)-len(tried) < need.Total) {
			// The remaining members are placed one by one after the group has started.
			break
		}
		class, known := at[m.Class]
		if !known {
			class = len(r.Short)
			at[m.Class], r.Short = class, append(r.Short, Shortage{Class: m.Class})
		}
		tried[m.UID] = true
		r.Short[class].Wanted++
		a, ok, err := on.Place(m)
		if err != nil {
			return r, false, err
		}
		if ok {
			r.Assignments = append(r.Assignments, a)
			r.Short[class].Fits++
			roles[m.Role]++
		}
	}
	r.Short = slices.DeleteFunc(r.Short, func(s Shortage) bool { return s.Fits == s.Wanted })
	return r, met(), nil
}

// best returns the best plan of all orders; try ends the search with last. It is greedy: a feasible plan can be missed,
// but a plan that does not fit never counts as feasible.
func (o *orders) best(try func(order) (a *Plan, last bool, err error)) (*Plan, error) {
	var best *Plan
	tries := 0
	for order := range o.all {
		a, last, err := try(order)
		if err != nil {
			return nil, err
		}
		best = better(best, a)
		if tries++; last || tries == mostOrders {
			break
		}
		o.short = a.Short
	}
	return best, nil
}
