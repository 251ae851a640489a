package candidates

import (
	"cmp"
	"slices"
)

// place is a node of a living class, with the locator's score of it.
type place struct {
	score int64
	slot  int32
}

// locate splits the living classes by the locator's score, so that a node in the right place is found even if most of
// its class are elsewhere.
func (r *ranking) locate(locator Locator) bool {
	score, err := locator.Locate(r.state)
	if err != nil {
		return false
	}
	r.alive, r.located = r.located[:0], r.alive
	r.slots = r.slots[:0]
	for _, e := range r.located {
		r.places = r.places[:0]
		for _, slot := range r.index.classes[e.class].members {
			r.places = append(r.places, place{score(r.index.slots[slot].info), slot})
		}
		slices.SortFunc(r.places, func(a, b place) int {
			return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.slot, b.slot))
		})
		for i, p := range r.places {
			if i == 0 || p.score != r.places[i-1].score {
				e.score, e.first = p.score, int32(len(r.slots))
				r.alive = append(r.alive, e)
			}
			r.slots = append(r.slots, p.slot)
			r.alive[len(r.alive)-1].last = int32(len(r.slots))
		}
	}
	return true
}

// members returns the nodes of a living class that are in its place.
func (r *ranking) members(e *ranked) []int32 {
	if e.last == 0 {
		return r.index.classes[e.class].members
	}
	return r.slots[e.first:e.last]
}
