package gang

import (
	"cmp"
	"math"
	"slices"
)

// ReserveProblem asks which rooms of which nodes to keep for a group that does not fit now, so that it fits as soon as the
// pods there have ended.
type ReserveProblem struct {
	// Need is what the group lacks to its minimum.
	Need    Minimum
	Classes []ReserveClass
	Nodes   []ReserveNode
	// MaxNodes is how many nodes may be kept.
	MaxNodes int
}

// ReserveClass is a number of members that ask for the same.
type ReserveClass struct {
	Role  string
	Count int
}

// ReserveNode is a node that may be kept.
type ReserveNode struct {
	Name string
	// Domain is equal for nodes that members may share. A negative one means that no member may use the node.
	Domain int
	// Kept is set if the group keeps room of the node already.
	Kept bool
	// Rooms says for each class what the node has for it.
	Rooms []ReserveRoom
}

// ReserveRoom is how many members of a class fit on a node.
type ReserveRoom struct {
	// Now counts those that fit into what is free and Empty those that would fit if no pod ran there.
	Now, Empty int
	// Pods is how many pods have to end until Empty members fit.
	Pods int
	// Free is how much of the node is free of what the members need the most, in thousandths.
	Free int
}

// Reservation is what to keep.
type Reservation struct {
	Places []ReservedPlace
	// Pods is how many pods have to end until the minimum fits, at the least.
	Pods int
	// Ready is set if the minimum fits on the kept nodes now.
	Ready bool
}

// ReservedPlace is room for a number of members of a class, which is given by its position.
type ReservedPlace struct {
	Node         string
	Class, Count int
}

// reserveSpare is how many places are kept beyond those that the minimum needs, for each of those, until the minimum fits. Run
// times are unknown, and the last pod of the nodes that are kept may run for very long: with places to spare the group
// starts when enough of them are free. Fewer make the group wait much longer, and what is free already idle with it; more
// hardly help. The measurements are in docs/gangs.md.
const reserveSpare = 0.5

// Reserve returns what to keep for the group. Room that is free comes first, then that of the nodes on which the fewest pods
// have to end: how long a pod has run says little about how long it will run, but a node is free when its last pod has
// ended, and the more pods run on it, the later that is and the more of the node idles until then. The result depends on the
// problem only, so asking again after every change lets go of nodes when others turn out to be free earlier.
//
// There is no result if the minimum would not fit in the empty cluster, within one domain or on so many nodes.
func Reserve(p *ReserveProblem) (Reservation, bool) {
	var domains []int
	for i := range p.Nodes {
		if d := p.Nodes[i].Domain; d >= 0 {
			domains = append(domains, d)
		}
	}
	slices.Sort(domains)
	domains = slices.Compact(domains)
	var best Reservation
	found, bestKept := false, false
	for _, d := range domains {
		r := reserver{problem: p, nodes: map[int]float64{}, counts: map[[2]int]int{}}
		kept := false
		for i := range p.Nodes {
			if p.Nodes[i].Domain == d {
				r.domain = append(r.domain, i)
				kept = kept || p.Nodes[i].Kept
			}
		}
		if found && bestKept && !kept {
			continue
		}
		// A group stays in its domain: what was kept there is not given up for another.
		if r.minimum() && (!found || (kept && !bestKept) || r.pods < best.Pods) {
			r.spare()
			best, found, bestKept = r.result(), true, kept
		}
	}
	return best, found
}

// reserver fills one reservation within a domain.
type reserver struct {
	problem *ReserveProblem
	domain  []int
	// units holds what may be taken for each class, the best first.
	units [][]reserveUnit
	// nodes holds how much of a node is taken, for nodes of which something is; counts how much of which class.
	nodes  map[int]float64
	counts map[[2]int]int
	// taken counts for each class the places of the minimum; pods is how many pods have to end for them.
	taken []int
	pods  int
}

// reserveUnit is room for one member on a node.
type reserveUnit struct {
	node, pods int
}

// minimum takes what the minimum needs and reports whether there is so much.
func (r *reserver) minimum() bool {
	p := r.problem
	for c := range p.Classes {
		r.units = append(r.units, r.unitsOf(c))
	}
	r.taken = make([]int, len(p.Classes))
	total, left := p.Need.Total, make([]int, len(p.Classes))
	roles := map[string]int{}
	for role, n := range p.Need.Roles {
		roles[role] = n
	}
	for c, class := range p.Classes {
		got := r.take(c, min(class.Count, roles[class.Role]), false)
		roles[class.Role] -= got
		total -= got
		left[c] = class.Count - got
	}
	for _, n := range roles {
		if n > 0 {
			return false
		}
	}
	for c := range p.Classes {
		total -= r.take(c, min(left[c], total), false)
	}
	return total <= 0
}

// spare takes more than the minimum if that does not fit yet, and as much of it as there is.
func (r *reserver) spare() {
	if r.pods == 0 {
		return
	}
	for c, n := range r.taken {
		r.take(c, int(math.Ceil(reserveSpare*float64(n))), true)
	}
}

// unitsOf returns the room for members of a class, in the order in which to keep it.
func (r *reserver) unitsOf(class int) []reserveUnit {
	p := r.problem
	var units []reserveUnit
	for _, n := range r.domain {
		room := p.Nodes[n].Rooms[class]
		for i := range room.Empty {
			pods := 0
			if i >= room.Now {
				pods = max(room.Pods, 1)
			}
			units = append(units, reserveUnit{n, pods})
		}
	}
	slices.SortFunc(units, func(a, b reserveUnit) int {
		x, y := &p.Nodes[a.node], &p.Nodes[b.node]
		if x.Kept != y.Kept && a.pods == b.pods {
			if x.Kept {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.pods, b.pods), cmp.Compare(y.Rooms[class].Free, x.Rooms[class].Free), cmp.Compare(x.Name, y.Name))
	})
	return units
}

// take takes room for up to n members of the class and returns for how many there is.
func (r *reserver) take(class, n int, spare bool) int {
	taken := 0
	for len(r.units[class]) > 0 && taken < n {
		u := r.units[class][0]
		r.units[class] = r.units[class][1:]
		used, known := r.nodes[u.node]
		used += 1 / float64(r.problem.Nodes[u.node].Rooms[class].Empty)
		if used > 1.0001 || (!known && len(r.nodes) >= r.problem.MaxNodes) {
			continue
		}
		r.nodes[u.node] = used
		r.counts[[2]int{u.node, class}]++
		taken++
		if !spare {
			r.taken[class]++
			r.pods += u.pods
		}
	}
	return taken
}

func (r *reserver) result() Reservation {
	out := Reservation{Pods: r.pods, Ready: r.pods == 0}
	for _, n := range r.domain {
		for c := range r.problem.Classes {
			if count := r.counts[[2]int{n, c}]; count > 0 {
				out.Places = append(out.Places, ReservedPlace{Node: r.problem.Nodes[n].Name, Class: c, Count: count})
			}
		}
	}
	return out
}
