package candidates

import (
	"maps"
	"slices"

	fwk "k8s.io/kube-scheduler/framework"
)

// images knows which nodes have which images, by slot. The score for images differs within a class.
type images struct {
	bySlot map[int32][]string
	nodes  map[string]*slotSet
}

// slotSet is a set of slots.
type slotSet struct {
	words []uint64
	size  int
}

func newImages() images { return images{bySlot: map[int32][]string{}, nodes: map[string]*slotSet{}} }

func (s *slotSet) has(at int32) bool {
	word := int(at / 64)
	return word < len(s.words) && s.words[word]&(1<<(at%64)) != 0
}

// set replaces the images of a node.
func (m *images) set(at int32, now map[string]*fwk.ImageStateSummary) {
	for _, name := range m.bySlot[at] {
		if _, ok := now[name]; !ok {
			set := m.nodes[name]
			set.words[at/64] &^= 1 << (at % 64)
			if set.size--; set.size == 0 {
				delete(m.nodes, name)
			}
		}
	}
	delete(m.bySlot, at)
	if len(now) == 0 {
		return
	}
	names := slices.Collect(maps.Keys(now))
	for _, name := range names {
		set := m.nodes[name]
		if set == nil {
			set = &slotSet{}
			m.nodes[name] = set
		}
		for len(set.words) <= int(at/64) {
			set.words = append(set.words, 0)
		}
		if !set.has(at) {
			set.words[at/64] |= 1 << (at % 64)
			set.size++
		}
	}
	m.bySlot[at] = names
}

// find returns the nodes with each of the images, without images that no node has.
func (m *images) find(names []string) []*slotSet {
	var found []*slotSet
	for _, name := range names {
		if set := m.nodes[name]; set != nil {
			found = append(found, set)
		}
	}
	return found
}

// countImages counts the wanted images that a node has.
func countImages(wanted []*slotSet, at int32) int {
	n := 0
	for _, set := range wanted {
		if set.has(at) {
			n++
		}
	}
	return n
}
