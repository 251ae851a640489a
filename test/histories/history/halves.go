package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// giveHalves has some gangs of some histories be two groups that are each in one zone, and more important than most.
// Nodes stay in their zones then, and nothing else happens to these gangs than to their pods. It draws apart, so that
// the rest of a history is the same as without.
func (h *History) giveHalves(random *rand.Rand) {
	if random.IntN(3) > 0 {
		return
	}
	unfit := map[string]bool{}
	for i := range h.Steps {
		if p := h.Steps[i].Pod; p != nil && (p.MinAvailable > 0 || p.Near || p.Spread != nil || p.Role != "") {
			unfit[p.Gang] = true
		}
	}
	halved, members := map[string]bool{}, map[string]int{}
	for i := range h.Steps {
		gang := h.Steps[i].Gang
		if gang != nil && !gang.Job && !unfit[gang.Name] && !gang.OneZone && gang.MinMember > 1 &&
			random.IntN(3) > 0 {
			gang.Halves, gang.MinMember = true, gang.MinMember/2*2
			halved[gang.Name] = true
		}
	}
	if len(halved) == 0 {
		return
	}
	for i := range h.Steps {
		if p := h.Steps[i].Pod; p != nil && halved[p.Gang] {
			p.Priority = 1000
			p.Half = fmt.Sprintf("half-%d", members[p.Gang]%2)
			members[p.Gang]++
		}
	}
	h.Steps = slices.DeleteFunc(h.Steps, func(s Step) bool {
		return s.Do == MoveNode || s.Do == ScaleGang && halved[s.Name] || s.Do == MoveToGang
	})
}
