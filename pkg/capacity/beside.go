package capacity

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangplan"
)

// Kept is capacity of a node that pods which are asked for may not have: it is kept for a pod of another gang, or that
// gang's plan gives it to a pod that is not bound yet. Two are the same if they are one object: what Leaves says must
// not change unless the index does.
type Kept struct {
	Node string
	// To is the gang for which it is kept.
	To gang.ID
	// Pod is for whom it is kept. It takes nothing more once it is bound.
	Pod *v1.Pod
	// Leaves reports whether a pod of the node gives way to what is kept; nil if none does. It must not call the index.
	Leaves func(*v1.Pod) bool
	// Why is said of a node on which nothing fits besides.
	Why gangplan.NodeCause
}

// reduced is a node with what is kept on it.
type reduced struct {
	*nodeEntry
	used []int64
	why  gangplan.NodeCause
}

// besides is what is left besides what is kept, with what was found for shapes.
type besides struct {
	kept   []*Kept
	nodes  []reduced
	taken  map[*shape]int64
	causes map[causesKey][]gangplan.NodeCause
}

// causesKey is whose causes they are: a shape, and the levels whose domains its pods share.
type causesKey struct {
	*shape
	levels string
}

// mostBesides bounds how many are remembered. Gangs of one priority, which are asked for one after the other, usually
// have the same kept for others.
const mostBesides = 4

// beside returns what is left besides what is kept. It is remembered until something changes: where many gangs wait,
// one event has all of them asked for.
func (x *book) beside(kept []*Kept) *besides {
	for _, b := range x.memo.besides {
		if slices.Equal(b.kept, kept) {
			return b
		}
	}
	if len(x.memo.besides) == mostBesides {
		x.memo.besides = slices.Delete(x.memo.besides, 0, 1)
	}
	b := &besides{kept: slices.Clone(kept), nodes: x.reduce(kept), taken: map[*shape]int64{},
		causes: map[causesKey][]gangplan.NodeCause{}}
	x.memo.besides = append(x.memo.besides, b)
	return b
}

// reduce returns the nodes on which something is kept.
func (x *book) reduce(kept []*Kept) []reduced {
	var out []reduced
	at := map[string]int{}
	uses := map[*v1.Pod][]use{}
	gone := map[*podEntry]bool{}
	for _, k := range kept {
		n := x.nodes.byName[k.Node]
		if n == nil || n.node == nil || x.pods.byUID[k.Pod.UID] != nil {
			continue
		}
		i, known := at[k.Node]
		if !known {
			i = len(out)
			at[k.Node] = i
			out = append(out, reduced{nodeEntry: n, used: slices.Clone(n.used), why: k.Why})
		}
		amounts, known := uses[k.Pod]
		if !known {
			amounts, _ = x.resources.uses(k.Pod)
			uses[k.Pod] = amounts
		}
		for _, u := range amounts {
			out[i].used[u.Resource] += u.Amount
		}
		if k.Leaves == nil {
			continue
		}
		for _, p := range n.pods {
			if !gone[p] && k.Leaves(p.Object) {
				gone[p] = true
				p.release(out[i].used)
			}
		}
	}
	return out
}

// takenOf returns how many pods of the shape fit fewer on all nodes than if nothing was kept.
func (b *besides) takenOf(s *shape) int64 {
	taken, known := b.taken[s]
	if !known {
		for i := range b.nodes {
			taken += b.nodes[i].taken(s)
		}
		b.taken[s] = taken
	}
	return taken
}

// taken returns how many pods of the shape fit fewer on the node than if nothing was kept there.
func (r *reduced) taken(s *shape) int64 {
	if s == nil || s.rule.verdicts[r.slot] != admitted {
		return 0
	}
	return max(slotsOn(s.bounds, r.has, r.nodeEntry.used)-slotsOn(s.bounds, r.has, r.used), 0)
}

// keptOff counts the nodes on which pods of the shape would fit if nothing was kept there, by what is said of that, and
// takes them off those that fit by domain.
func (b *besides) keptOff(s *shape, p *partition, fits []int) []gangplan.NodeCause {
	var causes []gangplan.NodeCause
	for i := range b.nodes {
		r := &b.nodes[i]
		slots := slotsOn(s.bounds, r.has, r.nodeEntry.used)
		if p.of[r.slot] < 0 || slots == 0 || r.taken(s) < slots {
			continue
		}
		fits[p.of[r.slot]]--
		c := slices.IndexFunc(causes, func(c gangplan.NodeCause) bool { return c.Says == r.why.Says })
		if c < 0 {
			c = len(causes)
			causes = append(causes, r.why)
		}
		causes[c].Nodes++
	}
	return causes
}
