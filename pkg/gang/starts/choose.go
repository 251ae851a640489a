package starts

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/tree"
)

// Problem asks which capacity to keep on which nodes for a group that does not fit now, so that it fits when pods there
// have ended.
type Problem struct {
	// Need is what the group lacks to its minimum.
	Need    gang.Minimum
	Classes []Class
	Nodes   []Node
	// MaxNodes is how many nodes may be kept.
	MaxNodes int
	// NoSpare keeps no more than the minimum needs.
	NoSpare bool
	// Tree has the sets of a group that is divided into groups or segments, and the domain of each of the nodes at their
	// levels; nil for others. Its classes are the shapes. What nodes have is known of the nodes.
	Tree *tree.Problem
}

// Class is a number of members that ask for the same.
type Class struct {
	Role  string
	Count int
	// Shape is the position of their room among that of each node. Classes of one shape share the room.
	Shape int
}

// Node is a node that may be kept.
type Node struct {
	Name string
	// Domain is equal for nodes that members may share. A negative one means that no member may use the node.
	Domain int
	// Kept is set if the group keeps room of the node already.
	Kept bool
	// Rooms says for each shape what the node has for it.
	Rooms []Room
	// Ends are those of its pods that are known, the soonest first, and Stages what it has when none of these, one, and so
	// on have ended. Only Soonest asks.
	Ends   []End
	Stages []Stage
	// Free is what a group with a Tree and several shapes finds free of each resource that the Asks of the Tree have: now,
	// and if no pod ran there.
	Free [2][]int64
}

// Room is how many members of a shape fit on a node.
type Room struct {
	// Now counts those that fit into what is free and Empty those that would fit if no pod ran there.
	Now, Empty int
	// Pods is how many pods have to end until Empty members fit.
	Pods int
	// Free is how much of the node is free of what the members need the most, in thousandths.
	Free int
}

// Choice is the capacity to keep.
type Choice struct {
	Places []Place
	// Pods is how many pods have to end until the minimum fits, at the least.
	Pods int
	// Ready is set if the minimum fits on the kept nodes now.
	Ready bool
	// Start is when the minimum fits by the ends that are known, zero if they are not asked, and Last the pod that has to
	// end last for that, empty if none has to.
	Start time.Time
	Last  gang.UID
}

// Place is room for a number of members of a class, which is given by its position.
type Place struct {
	Node         string
	Class, Count int
}

// Choose returns what to keep for the group. It takes free capacity first, then the nodes on which the fewest pods have
// to end: the more pods run on a node, the later the last of them ends, and the more of the node idles until then. The
// age of a pod says little about when it ends. The result depends on the problem only, so that another call after a
// change drops nodes if others are free earlier.
//
// The class that fits on the fewest nodes is placed first. If another order of the classes needs fewer pods to end, it
// is used.
//
// There is no result if the minimum does not fit in one domain, on MaxNodes nodes, even without pods.
//
// If the group is divided, the domains of its sets decide the nodes.
func Choose(p *Problem) (Choice, bool) {
	if p.Tree != nil {
		return chooseBySet(p)
	}
	domains := map[int][]int{}
	for i := range p.Nodes {
		if d := p.Nodes[i].Domain; d >= 0 {
			domains[d] = append(domains[d], i)
		}
	}
	var best *reserver
	bestKept := false
	for _, d := range slices.Sorted(maps.Keys(domains)) {
		domain := domains[d]
		slices.SortFunc(domain, func(a, b int) int { return cmp.Compare(p.Nodes[a].Name, p.Nodes[b].Name) })
		kept := slices.ContainsFunc(domain, func(i int) bool { return p.Nodes[i].Kept })
		if best != nil && bestKept && !kept {
			continue
		}
		for _, order := range classOrders(p, domain) {
			r := &reserver{keeping: keep(p), domain: domain, order: order, queues: map[int][]entry{}}
			// A group stays in its domain: what was kept there is not given up for another.
			if r.minimum() && (best == nil || (kept && !bestKept) || r.pods < best.pods) {
				best, bestKept = r, kept
			}
		}
	}
	if best == nil {
		return Choice{}, false
	}
	if best.pods > 0 && !p.NoSpare {
		best.spare()
	}
	return best.result(best.pods), true
}

// classOrders are the orders in which the classes are served: the one with room for the fewest members first, and last.
func classOrders(p *Problem, domain []int) [][]int {
	rooms := make([]int, len(p.Nodes[domain[0]].Rooms))
	for _, n := range domain {
		for shape, room := range p.Nodes[n].Rooms {
			rooms[shape] += room.Empty
		}
	}
	room := func(class int) int { return rooms[p.Classes[class].Shape] }
	order := make([]int, len(p.Classes))
	for c := range order {
		order[c] = c
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(room(a), room(b)) })
	easiest := slices.Clone(order)
	slices.SortStableFunc(easiest, func(a, b int) int { return cmp.Compare(room(b), room(a)) })
	return slices.CompactFunc([][]int{order, easiest}, slices.Equal)
}

// reserver fills one reservation within a domain.
type reserver struct {
	*keeping
	// domain holds the positions of the nodes, in the order of their names.
	domain []int
	// order is that in which the classes are served.
	order []int
	// queues hold what may be taken for the shapes that were asked for so far, those last that are to be kept first.
	queues map[int][]entry
	// taken counts for each class the places of the minimum; pods is how many pods have to end for them.
	taken []int
	pods  int
}

// minimum takes what the minimum needs and reports whether there is so much.
func (r *reserver) minimum() bool {
	r.taken = make([]int, len(r.Classes))
	total, roles := r.Need.Total, maps.Clone(r.Need.Roles)
	for _, c := range r.order {
		class := &r.Classes[c]
		if need := roles[class.Role]; need > 0 {
			got := r.take(c, min(class.Count, need), false)
			roles[class.Role] -= got
			total -= got
		}
	}
	for _, n := range roles {
		if n > 0 {
			return false
		}
	}
	for _, c := range r.order {
		if total <= 0 {
			break
		}
		total -= r.take(c, min(r.Classes[c].Count-r.taken[c], total), false)
	}
	return total <= 0
}

// spare takes more than the minimum, as much of it as there is.
func (r *reserver) spare() {
	for _, c := range r.order {
		n := r.taken[c]
		r.take(c, spareOf(n), true)
	}
}

// take takes room for up to n members of the class and returns for how many there is.
func (r *reserver) take(class, n int, spare bool) int {
	if n <= 0 {
		return 0
	}
	shape := r.Classes[class].Shape
	if r.queues[shape] == nil {
		r.queues[shape] = newQueue(r.Nodes, r.domain, shape)
	}
	q, taken := r.queues[shape], 0
	for taken < n && len(q) > 0 {
		e := &q[len(q)-1]
		got := r.fill(r.domain[e.node], class, min(e.places, n-taken))
		taken += got
		if !spare {
			r.taken[class] += got
			r.pods += got * e.pods
		}
		// A node that cannot be filled any further is full for good: what is taken is not given back.
		if e.places -= got; taken < n || e.places == 0 {
			q = q[:len(q)-1]
		}
	}
	r.queues[shape] = q
	return taken
}

// entry is a number of places on a node for which the same number of pods have to end.
type entry struct {
	// node is the position among the nodes of the domain, which are in the order of their names.
	node         int
	places, pods int
	// free is that of the node's room, other is 1 unless something of the node is kept already.
	free, other int
}

// newQueue returns what the nodes with these positions have for members of the shape, what is free and what is not yet,
// those last that are to be kept first.
func newQueue(nodes []Node, domain []int, shape int) []entry {
	q := make([]entry, 0, 2*len(domain))
	for at, n := range domain {
		room := &nodes[n].Rooms[shape]
		e := entry{node: at, free: room.Free, other: 1}
		if nodes[n].Kept {
			e.other = 0
		}
		now := min(room.Now, room.Empty)
		if e.places = now; now > 0 {
			q = append(q, e)
		}
		if e.places, e.pods = room.Empty-now, max(room.Pods, 1); e.places > 0 {
			q = append(q, e)
		}
	}
	slices.SortFunc(q, func(a, b entry) int {
		return cmp.Or(cmp.Compare(b.pods, a.pods), cmp.Compare(b.other, a.other), cmp.Compare(a.free, b.free),
			cmp.Compare(b.node, a.node))
	})
	return q
}
