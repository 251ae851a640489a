package capacity

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/obstacle"
)

// Kept is capacity of a node that is kept for a pod of another gang, or that the plan of that gang gives to a pod that
// is not bound yet. Kepts are compared by address, so the result of Leaves must not change unless the index does.
type Kept struct {
	Node string
	// To is the gang for which it is kept.
	To gang.ID
	// Pod is the pod for which it is kept. Once that is bound, nothing more is kept.
	Pod *v1.Pod
	// Leaves reports whether a pod of the node gives way to what is kept; nil if none does. It must not call the index.
	Leaves func(*v1.Pod) bool
}

// reduced is a node with what is kept on it.
type reduced struct {
	*nodeEntry
	used []int64
	// to is the first gang for which something is kept.
	to gang.ID
}

// besides is what is left besides what is kept, with what was found for shapes.
type besides struct {
	kept []*Kept
	// nodes are those on which something is kept, by slot.
	nodes  map[int]*reduced
	taken  map[*shape]int64
	causes map[causesKey]obstacle.Nodes
}

// causesKey is whose causes they are: a shape, and the levels whose domains its pods share.
type causesKey struct {
	*shape
	levels string
}

// mostBesides bounds how many are remembered. Gangs of one priority, which are looked at one after the other, usually
// have to leave the same capacity to others.
const mostBesides = 4

// beside returns what is left besides kept capacity. It is remembered until something changes, because one event has
// all gangs that wait looked at.
func (x *store) beside(kept []*Kept) *besides {
	for _, b := range x.memo.besides {
		if slices.Equal(b.kept, kept) {
			return b
		}
	}
	if len(x.memo.besides) == mostBesides {
		x.memo.besides = slices.Delete(x.memo.besides, 0, 1)
	}
	b := &besides{kept: slices.Clone(kept), nodes: x.reduce(kept), taken: map[*shape]int64{},
		causes: map[causesKey]obstacle.Nodes{}}
	x.memo.besides = append(x.memo.besides, b)
	return b
}

// reduce returns the nodes on which something is kept.
func (x *store) reduce(kept []*Kept) map[int]*reduced {
	out := map[int]*reduced{}
	gone := map[*podEntry]bool{}
	for _, k := range kept {
		n := x.nodes.byName[k.Node]
		if n == nil || n.node == nil || x.pods.byUID[k.Pod.UID] != nil {
			continue
		}
		if out[n.slot] == nil {
			out[n.slot] = &reduced{nodeEntry: n, used: slices.Clone(n.used), to: k.To}
		}
		left := out[n.slot]
		amounts, _ := x.resources.uses(k.Pod)
		for _, u := range amounts {
			left.used[u.Resource] += u.Amount
		}
		if k.Leaves == nil {
			continue
		}
		for _, p := range n.pods {
			if !gone[p] && k.Leaves(p.Object) {
				gone[p] = true
				p.release(left.used)
			}
		}
	}
	return out
}

// takenOf returns how many fewer pods of the shape fit on all nodes than if nothing was kept.
func (b *besides) takenOf(s *shape) int64 {
	taken, known := b.taken[s]
	if !known {
		for _, r := range b.nodes {
			taken += r.taken(s)
		}
		b.taken[s] = taken
	}
	return taken
}

// taken returns how many fewer pods of the shape fit on the node than if nothing was kept there.
func (r *reduced) taken(s *shape) int64 {
	if s == nil || !s.admits(r.nodeEntry) {
		return 0
	}
	return max(s.slotsOn(r.nodeEntry)-slotsOn(s.bounds, r.has, r.used), 0)
}

// KeptFor is the reason that the free capacity of a node is kept for a gang.
type KeptFor gang.ID

// String names the gang.
func (p KeptFor) String() string {
	what := "gang "
	if strings.Contains(p.Name, " ") {
		what = "" // no object's name has a space
	}
	return "node(s) whose free capacity is kept for " + what + gang.ID(p).String()
}

// Kind does not name the gang.
func (KeptFor) Kind() string { return "node(s) whose free capacity is kept for a gang" }
