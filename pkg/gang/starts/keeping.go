package starts

import (
	"maps"
	"math"
	"slices"
)

// keeping is what is kept so far.
type keeping struct {
	*Problem
	// used holds how much of a node is kept, for nodes in use; counts for how many members by node and class.
	used   map[int]float64
	counts map[[2]int]int
}

// keep begins with nothing.
func keep(p *Problem) *keeping {
	return &keeping{Problem: p, used: map[int]float64{}, counts: map[[2]int]int{}}
}

// share is how much of the node a member of the class takes.
func (k *keeping) share(node, class int) float64 {
	return 1 / float64(k.Nodes[node].Rooms[k.Classes[class].Shape].Empty)
}

// add keeps room on the node for one member of the class.
func (k *keeping) add(node, class int) {
	k.used[node] += k.share(node, class)
	k.counts[[2]int{node, class}]++
}

// fill keeps up to most places of the node and returns how many.
func (k *keeping) fill(node, class, most int) (got int) {
	share := k.share(node, class)
	for got < most && k.used[node]+share <= 1.0001 && (k.used[node] > 0 || len(k.used) < k.MaxNodes) {
		k.add(node, class)
		got++
	}
	return got
}

// spareShare is how many more places are kept for each place of the minimum, until the minimum fits. Run times are
// unknown, and one pod on a kept node may run for very long: with spare places the group starts when enough of them are
// free. With fewer the group, and the capacity kept for it, wait much longer; more hardly help.
const spareShare = 0.5

// spareOf is how many places are kept beyond some that the minimum needs.
func spareOf(places int) int { return int(math.Ceil(spareShare * float64(places))) }

// result is the answer; pods is how many pods have to end until the minimum fits.
func (k *keeping) result(pods int) Choice {
	out := Choice{Pods: pods, Ready: pods == 0}
	for _, at := range slices.SortedFunc(maps.Keys(k.counts),
		func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }) {
		out.Places = append(out.Places, Place{Node: k.Nodes[at[0]].Name, Class: at[1], Count: k.counts[at]})
	}
	return out
}
