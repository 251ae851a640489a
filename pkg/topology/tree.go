package topology

import "slices"

// domain is a set of nodes that share their domains at a level and at all wider levels. Domains of one level are the
// children of those of the next wider one.
type domain struct {
	parent   *domain
	name     string
	children []*domain
	// nodes are the indices of those nodes of a narrowest domain that have slots, spare of those that have none.
	nodes, spare []int
	// slots bounds from above how many members of each class the domain takes, size how many of those that are wanted.
	slots []int
	size  int
	// usable is the number of nodes with slots.
	usable int
	held   int
	// beside is how many of the wanted members belong beside one that the domain holds.
	beside int
	// alone is set for a node that lacks the label of the level.
	alone bool
	// order numbers the domains in the order in which they are filled, those within a domain after it.
	order int
}

// first is the room of the domain for the class by which fit is measured.
func (d *domain) first() int {
	if len(d.slots) == 0 {
		return 0
	}
	return d.slots[0]
}

// gain is how many of the members that are left the domain takes.
func (d *domain) gain(rest []int) int {
	gain := 0
	for c, n := range rest {
		gain += min(n, d.slots[c])
	}
	return gain
}

// take subtracts from rest what the domain takes.
func (d *domain) take(rest []int) {
	for c, n := range rest {
		rest[c] = n - min(n, d.slots[c])
	}
}

// grow returns the tree of the nodes that lie in a domain of each of the first required levels.
func grow(nodes []Node, required int, want []int) *domain {
	type key struct {
		parent *domain
		name   string
	}
	root := &domain{slots: make([]int, len(want))}
	index := map[key]*domain{}
	for i := range nodes {
		n := &nodes[i]
		if slices.Contains(n.Path[:required], "") {
			continue
		}
		d := root
		for _, name := range n.Path {
			child := index[key{d, name}]
			if child == nil {
				child = &domain{parent: d, name: name, alone: name == "", slots: make([]int, len(want))}
				d.children = append(d.children, child)
				if !child.alone {
					index[key{d, name}] = child
				}
			}
			if d = child; d.alone {
				break
			}
		}
		usable := 0
		if slices.ContainsFunc(n.Slots, func(slots int) bool { return slots > 0 }) {
			usable = 1
			d.nodes = append(d.nodes, i)
		} else {
			d.spare = append(d.spare, i)
		}
		for ; d != nil; d = d.parent {
			d.usable += usable
			d.held += n.Held
			d.beside += n.Beside
			for c, slots := range n.Slots[:min(len(n.Slots), len(want))] {
				d.slots[c] += slots
			}
		}
	}
	root.size = root.gain(want)
	root.finish(want, 0)
	return root
}

// finish sorts the domains in the order in which they are filled, and returns the next number in this order.
func (d *domain) finish(want []int, order int) int {
	d.order = order
	order++
	for _, c := range d.children {
		c.size = c.gain(want)
	}
	slices.SortStableFunc(d.children, byFilling)
	for _, c := range d.children {
		order = c.finish(want, order)
	}
	return order
}

// below returns the domains that lie a number of levels below.
func (d *domain) below(levels int) []*domain {
	domains := []*domain{d}
	for range levels {
		var next []*domain
		for _, d := range domains {
			next = append(next, d.children...)
		}
		domains = next
	}
	return domains
}

// fill appends all nodes of the domain as sets in the order in which to fill them.
func (d *domain) fill(sets [][]int) [][]int {
	if d.children == nil {
		return append(sets, slices.Concat(d.nodes, d.spare))
	}
	var alone []int
	for _, c := range d.children {
		if c.alone && c.held == 0 {
			alone = append(append(alone, c.nodes...), c.spare...)
			continue
		}
		sets = c.fill(sets)
	}
	if len(alone) > 0 {
		sets = append(sets, alone)
	}
	return sets
}
