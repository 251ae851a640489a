package gangplan

import "berth.dev/berth/pkg/gang"

// Board is a dry run on the cluster, on which members are placed one after the other.
type Board interface {
	// Place places the member on the node that is best for it now, given all that were placed before. ok is false if
	// there is none.
	Place(m gang.Member) (a gang.Assignment, ok bool, err error)
	// Spent reports whether so much work has gone into the plan that it has to come to an end.
	Spent() bool
}

// Result is what came of planning a group.
type Result struct {
	// Assignments holds what the members that found a node were given, in the order in which they were placed.
	Assignments []gang.Assignment
	// Need is what the group cannot start without.
	Need gang.Minimum
	// Short lists the classes with members that found no node.
	Short []Shortage
	// Segments says what parts of the group share, if there are such parts, Lacking which part finds no place.
	Segments, Lacking string

	feasible bool
}

// Shortage is one class of members that do not all fit.
type Shortage struct {
	Class        string
	Wanted, Fits int
}

// Feasible reports whether the group can start with the nodes found.
func (r *Result) Feasible() bool { return r.feasible }

// Build places members on boards, all that fit and enough to meet need, and returns the result with the board that it
// was found on. Members of one class are placed in a row. At first the hardest class goes first, because what fits
// almost nowhere must choose before what fits almost everywhere. If too few members find a node like that, other orders
// are tried, each on a board of its own: what the roles need before anything else, the easiest class first, which
// places the most, and then what was left over in the try before goes first (Joslin and Clements, Squeaky Wheel
// Optimization, JAIR 10, 1999). Greedy, not optimal: a feasible plan can be missed, an infeasible one is never
// returned.
func Build[B Board](members []gang.Member, need gang.Minimum, hardness func(class string) float64,
	board func() (B, error)) (Result, B, error) {
	var best Result
	var bestBoard B
	o := newOrders(members, need, hardness)
	for tries := range mostOrders {
		order, ok := o.next()
		if !ok {
			break
		}
		b, err := board()
		if err != nil {
			return best, bestBoard, err
		}
		r, err := place(order, need, b)
		if err != nil {
			return best, bestBoard, err
		}
		if tries == 0 || r.feasible || len(r.Assignments) > len(best.Assignments) {
			best, bestBoard = r, b
		}
		if r.feasible || b.Spent() {
			break
		}
		o.learn(order, r.Short)
	}
	return best, bestBoard, nil
}

// place places the members in order.
func place[B Board](o order, need gang.Minimum, b B) (Result, error) {
	r := Result{Need: need}
	wanted, fits, roles := map[string]int{}, map[string]int{}, map[string]int{}
	var classes []string
	tried := map[gang.UID]bool{}
	try := func(m gang.Member) error {
		tried[m.UID] = true
		if wanted[m.Class]++; wanted[m.Class] == 1 {
			classes = append(classes, m.Class)
		}
		a, ok, err := b.Place(m)
		if ok && err == nil {
			r.Assignments = append(r.Assignments, a)
			fits[m.Class]++
			roles[m.Role]++
		}
		return err
	}
	for _, m := range o.first {
		if roles[m.Role] < need.Roles[m.Role] {
			if err := try(m); err != nil {
				return r, err
			}
		}
	}
	left := len(o.rest) - len(tried)
	for _, m := range o.rest {
		if !tried[m.UID] {
			if b.Spent() && (r.meets(roles) || len(r.Assignments)+left < need.Total) {
				// Those that are left are placed one by one once the group has started, if it does.
				break
			}
			left--
			if err := try(m); err != nil {
				return r, err
			}
		}
	}
	for _, class := range classes {
		if fits[class] < wanted[class] {
			r.Short = append(r.Short, Shortage{Class: class, Wanted: wanted[class], Fits: fits[class]})
		}
	}
	r.feasible = r.meets(roles)
	return r, nil
}

// meets reports whether what was placed, in total and by role, is enough.
func (r *Result) meets(roles map[string]int) bool {
	return r.Need.MetBy(len(r.Assignments), func(role string) int { return roles[role] })
}
