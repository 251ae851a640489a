package topology

import (
	"cmp"
	"slices"

	"berth.dev/berth/pkg/minheap"
)

const (
	// mostChoices is how many sets of equally many domains are sought, mostLastChoices how many of narrowest domains,
	// and mostChosen how many domains may be in these sets together.
	mostChoices, mostLastChoices, mostChosen = 32, 4, 2048
	// mostSteps bounds the work of trying combinations.
	mostSteps = 256
)

// option is a domain that may be chosen, with how many of the members that were left it takes.
type option struct {
	*domain
	gain int
}

func compareOptions(a, b option) int {
	return cmp.Or(cmp.Compare(b.gain, a.gain), cmp.Compare(a.order, b.order))
}

// choose returns sets of domains that together take the rest, all of the same number of domains. For one class that is
// the least possible number: the largest domains cover the rest with the fewest. Of these sets some are returned, all
// if they are few, and in any case the set of the largest domains with the last replaced by the one that fits best.
// Domains that are nodes on their own are chosen only if there are fewer domains with them than without.
func choose(from []*domain, rest []int) [][]*domain {
	options := make([]option, 0, len(from))
	for _, d := range from {
		if gain := d.gain(rest); gain > 0 {
			options = append(options, option{domain: d, gain: gain})
		}
	}
	slices.SortFunc(options, compareOptions)
	fewest := greedy(options, rest)
	mixed := slices.ContainsFunc(fewest, func(d *domain) bool { return d.alone })
	options = slices.DeleteFunc(options, func(o option) bool { return o.alone })
	if mixed {
		named := greedy(options, rest)
		if named == nil || len(named) > len(fewest) {
			return [][]*domain{fewest}
		}
		fewest = named
	}
	switch total := sum(rest); len(fewest) {
	case 0:
		return [][]*domain{nil}
	case 1:
		var single [][]*domain
		for _, o := range options {
			if o.gain == total {
				single = append(single, []*domain{o.domain})
			}
		}
		return single
	}
	return alternatives(options, rest, fewest)
}

// greedy takes the domain with the largest gain until nothing is left, and of those that take all that is left the one
// that leaves the least room over. Nil if the options do not suffice, or if there is nothing to take.
func greedy(options []option, rest []int) []*domain {
	rest = slices.Clone(rest)
	total := sum(rest)
	var chosen []*domain
	// Gains only fall as members are taken, so that the top is right once its own gain is up to date.
	h := minheap.Heap[option]{Items: slices.Clone(options), Compare: compareOptions}
	for total > 0 {
		if h.Len() == 0 {
			return nil
		}
		top := h.Items[0]
		if gain := top.domain.gain(rest); gain < top.gain {
			if gain == 0 {
				h.Pop()
				continue
			}
			h.Items[0].gain = gain
			h.Fix()
			continue
		}
		if top.gain == total {
			for _, o := range h.Items {
				if o.domain.gain(rest) == total && tighter(o.domain, top.domain) {
					top = o
				}
			}
			return append(chosen, top.domain)
		}
		h.Pop()
		chosen = append(chosen, top.domain)
		top.take(rest)
		total -= top.gain
	}
	return chosen
}

// tighter reports whether a leaves less room over than b, both taking the same.
func tighter(a, b *domain) bool {
	if a.alone != b.alone {
		return b.alone
	}
	return cmp.Or(cmp.Compare(a.first(), b.first()), cmp.Compare(a.order, b.order)) < 0
}

// alternatives returns known and further sets that cover the rest with equally many domains, or sets of fewer domains
// if a bounded search finds some.
func alternatives(options []option, rest []int, known []*domain) [][]*domain {
	choices := mostChoices
	if options[0].children == nil {
		choices = mostLastChoices
	}
	c := combinations{options: options, covered: make([]int, len(options)+1)}
	for i, o := range options {
		c.covered[i+1] = c.covered[i] + o.gain
	}
	// No set is smaller than the number of options whose gains, were they independent, add up to the rest.
	least, _ := slices.BinarySearch(c.covered, sum(rest))
	for size := least; size <= len(known) && c.steps < mostSteps; size++ {
		c.most = min(choices, max(mostChosen/size, 1))
		c.find(nil, 0, size, rest)
		if len(c.found) > 0 && size < len(known) {
			return c.found
		}
	}
	found := append(c.found, known)
	for _, set := range found {
		slices.SortFunc(set, byOrder)
	}
	slices.SortFunc(found, compareSets)
	return slices.CompactFunc(found, func(a, b []*domain) bool { return compareSets(a, b) == 0 })
}

func byOrder(a, b *domain) int { return cmp.Compare(a.order, b.order) }

func compareSets(a, b []*domain) int { return slices.CompareFunc(a, b, byOrder) }

// combinations looks for sets of options that cover what is left.
type combinations struct {
	// options are sorted by gain, the largest first; covered holds the sum of the gains of as many of the first.
	options []option
	covered []int
	found   [][]*domain
	most    int
	steps   int
}

// find appends the sets that consist of chosen and size options from the given one on, as long as there are not too
// many.
func (c *combinations) find(chosen []*domain, from, size int, rest []int) {
	total := sum(rest)
	if size == 0 {
		if total == 0 {
			c.found = append(c.found, slices.Clone(chosen))
		}
		return
	}
	for i := from; i+size <= len(c.options); i++ {
		c.steps++
		if c.covered[i+size]-c.covered[i] < total || c.steps > mostSteps || len(c.found) == c.most {
			return
		}
		left := slices.Clone(rest)
		c.options[i].take(left)
		c.find(append(chosen, c.options[i].domain), i+1, size-1, left)
	}
}
