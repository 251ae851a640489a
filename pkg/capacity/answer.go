package capacity

import (
	"slices"
	"strings"
)

// Need is how many pods of a shape a gang needs.
type Need struct {
	Shape ShapeKey
	Count int
}

// Slots returns how many pods of a shape fit at most: into what is free, and if no pod ran in the cluster.
func (x *Index) Slots(key ShapeKey) (now, empty int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.shapes.byKey[key]
	if s == nil {
		return manySlots, manySlots
	}
	return int(s.total.now), int(s.total.empty)
}

// Best returns how many of the needed pods fit at most within one domain: nodes with the same values of the labels
// keys, and with the values in pinned that are not empty. Without keys, the cluster is the domain. With empty set, no
// pod runs. Each shape is counted without the others, and a shape that is not live fits everywhere.
func (x *Index) Best(needs []Need, keys, pinned []string, empty bool) int {
	return x.best(needs, keys, pinned, empty, nil)
}

// BestBeside is Best for what is free besides kept capacity.
func (x *Index) BestBeside(needs []Need, keys []string, kept []*Kept) int {
	return x.best(needs, keys, nil, false, kept)
}

func (x *Index) best(needs []Need, keys, pinned []string, empty bool, kept []*Kept) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	beside := x.beside(kept)
	if len(keys) == 0 {
		fits := int64(0)
		for _, need := range needs {
			total := int64(manySlots)
			if s := x.shapes.byKey[need.Shape]; s != nil && empty {
				total = s.total.empty
			} else if s != nil {
				total = s.total.now - beside.takenOf(s)
			}
			fits += min(int64(need.Count), total)
		}
		return int(fits)
	}
	p := x.partition(keys)
	fits := make([]int64, p.domains)
	sums := make([]int64, p.domains)
	for i, need := range needs {
		if i == 0 || need.Shape != needs[i-1].Shape {
			x.shapes.byKey[need.Shape].sums(x.nodes.slots, p, empty, sums)
			for slot, r := range beside.nodes {
				if d := p.of[slot]; d >= 0 {
					sums[d] -= r.taken(x.shapes.byKey[need.Shape])
				}
			}
		}
		for d := range sums {
			fits[d] += min(int64(need.Count), sums[d])
		}
	}
	most := int64(0)
	for d, n := range fits {
		if n > most && p.matches(d, pinned) {
			most = n
		}
	}
	return int(most)
}

// sums counts the slots of a shape by domain; one that is not live fits everywhere.
func (s *shape) sums(nodes []*nodeEntry, p *partition, empty bool, sums []int64) {
	clear(sums)
	for i, d := range p.of {
		switch {
		case d < 0:
		case s == nil:
			sums[d] += manySlots
		case empty:
			sums[d] += s.slotsOnEmpty(nodes[i])
		default:
			sums[d] += s.slotsOn(nodes[i])
		}
	}
}

// partition says which node lies in which domain of some labels.
type partition struct {
	domains int
	// of holds the domain of each node by slot, -1 for nodes without one.
	of []int
	// values holds the values of the labels of each domain.
	values [][]string
}

func (p *partition) matches(domain int, pinned []string) bool {
	for i, value := range pinned {
		if value != "" && p.values[domain][i] != value {
			return false
		}
	}
	return true
}

// maxPartitions bounds how many partitions are remembered: users name the labels.
const maxPartitions = 64

func (x *store) partition(keys []string) *partition {
	labels := strings.Join(keys, "\x00")
	if p := x.memo.domains[labels]; p != nil {
		return p
	}
	if len(x.memo.domains) >= maxPartitions {
		clear(x.memo.domains)
	}
	p := &partition{of: slices.Repeat([]int{-1}, len(x.nodes.slots))}
	x.memo.domains[labels] = p
	index := map[string]int{}
	for i, n := range x.nodes.existing() {
		values := make([]string, len(keys))
		for k, key := range keys {
			values[k] = n.node.Labels[key]
		}
		if slices.Contains(values, "") {
			continue
		}
		path := strings.Join(values, "\x00")
		d, known := index[path]
		if !known {
			d = p.domains
			index[path] = d
			p.domains++
			p.values = append(p.values, values)
		}
		p.of[i] = d
	}
	return p
}

// SlotsOn returns how many pods of the shape fit on each of the nodes into what is free: 0 on a node that they may not
// use.
func (x *Index) SlotsOn(key ShapeKey, names []string) []int {
	x.mu.Lock()
	defer x.mu.Unlock()
	slots := make([]int, len(names))
	s := x.shapes.byKey[key]
	if s == nil {
		return slots
	}
	for i, name := range names {
		if n := x.nodes.byName[name]; n != nil {
			slots[i] = int(s.slotsOn(n))
		}
	}
	return slots
}
