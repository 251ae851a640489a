package capacity

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process"
)

// resources are those that a node has ever offered, in the order of all vectors. Resources that only pods name are left
// out, because users may name anything.
type resources struct {
	names []v1.ResourceName
	index map[v1.ResourceName]int
	// offered counts the nodes that offer a resource, by position.
	offered []int
	// changes counts how often a resource was offered for the first time or no longer.
	changes int
	// profiles know which resources device classes hand out. They are asked with the index locked.
	profiles *process.Profiles
}

// bound is an ask for a resource with a position.
type bound struct {
	Resource int
	Amount   int64
	// claimed is set if a device class allocates the resource on nodes that do not offer it.
	claimed bool
}

// bounds returns the asks that limit how many pods fit, those first that usually limit the most. A resource that no
// node offers is no limit: it may be allocated in a way that this index does not know.
func (r *resources) bounds(asks []ask) []bound {
	var out []bound
	for _, a := range asks {
		if i, known := r.index[a.name]; known && r.offered[i] > 0 {
			out = append(out, bound{Resource: i, Amount: a.amount, claimed: r.profiles.Claimed(a.name)})
		}
	}
	slices.SortStableFunc(out, func(a, b bound) int { return cmp.Compare(r.tightness(a), r.tightness(b)) })
	return out
}

// tightness is lower for resources that nodes have few of.
func (r *resources) tightness(b bound) int {
	switch r.names[b.Resource] {
	case v1.ResourcePods:
		return 1
	case v1.ResourceCPU:
		return 2
	case v1.ResourceMemory, v1.ResourceEphemeralStorage:
		return 3
	}
	return 0
}

// maxUse bounds what one pod uses of a resource in this index, so that the sum over a node's pods does not overflow: a
// pod may be bound by hand whatever it requests.
const maxUse = 1 << 52

// use is how much of a resource a pod uses, the resource being a position in the index's vectors.
type use struct {
	Resource int
	Amount   int64
}

// uses returns what a bound pod uses, in the order of the resources' positions, and what it requests of others.
func (r *resources) uses(pod *v1.Pod) (all []use, others map[v1.ResourceName]int64) {
	requests := podview.RequestsNow(pod)
	all = make([]use, 0, len(requests)+1)
	count := func(name v1.ResourceName, amount int64) {
		if i, known := r.index[name]; known {
			all = append(all, use{Resource: i, Amount: min(amount, maxUse)})
			return
		}
		if others == nil {
			others = map[v1.ResourceName]int64{}
		}
		others[name] = min(amount, maxUse)
	}
	count(v1.ResourcePods, 1)
	for name, q := range requests {
		if q.Sign() > 0 && name != v1.ResourcePods {
			count(name, podview.Amount(name, q))
		}
	}
	slices.SortFunc(all, func(a, b use) int { return a.Resource - b.Resource })
	return all, others
}

// manySlots stands for any number of pods.
const manySlots = math.MaxInt32

// slotsOn returns how many pods with these bounds fit into what a node has besides what is used, if anything.
func slotsOn(bounds []bound, has, used []int64) int64 {
	slots := int64(manySlots)
	for i := range bounds {
		b := &bounds[i]
		if b.claimed && has[b.Resource] == 0 {
			continue
		}
		free := has[b.Resource]
		if used != nil {
			free -= used[b.Resource]
		}
		if slots = b.limit(slots, free); slots == 0 {
			return 0
		}
	}
	return slots
}

// limit returns how many pods fit into what is free, up to a number. Most bounds do not limit what tighter ones before
// them leave, and a multiplication tells that for much less than a division costs.
func (b *bound) limit(slots, free int64) int64 {
	if free < b.Amount {
		return 0
	}
	if high, low := bits.Mul64(uint64(slots), uint64(b.Amount)); high == 0 && low <= uint64(free) {
		return slots
	}
	return free / b.Amount
}
