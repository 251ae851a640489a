package candidates

import (
	"maps"
	"math/big"
	"slices"

	fwk "k8s.io/kube-scheduler/framework"
)

// images knows which nodes have which images, by slot. The score for images differs within a class.
type images struct {
	bySlot map[int32][]string
	nodes  map[string]*slotSet
}

// slotSet is a set of slots, as the bits of a number.
type slotSet = big.Int

func newImages() images { return images{bySlot: map[int32][]string{}, nodes: map[string]*slotSet{}} }

// set replaces the images of a node.
func (m *images) set(at int32, now map[string]*fwk.ImageStateSummary) {
	for _, name := range m.bySlot[at] {
		if _, ok := now[name]; !ok {
			if set := m.nodes[name]; set.SetBit(set, int(at), 0).Sign() == 0 {
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
		set.SetBit(set, int(at), 1)
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
		n += int(set.Bit(int(at)))
	}
	return n
}
