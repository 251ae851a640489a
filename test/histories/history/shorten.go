package history

import "slices"

// Shorten leaves out what the fault does not need: steps, halves of them first, then nodes, then the weather. shows
// says whether a history still shows the fault, and late that it is time to stop. (Delta debugging: Zeller and
// Hildebrandt, "Simplifying and isolating failure-inducing input", IEEE Transactions on Software Engineering 28(2),
// 2002.)
func Shorten(h *History, shows func(*History) bool, late func() bool) *History {
	best := *h
	try := func(change func(*History)) bool {
		if late() {
			return false
		}
		candidate := best
		candidate.Steps, candidate.Nodes = slices.Clone(best.Steps), slices.Clone(best.Nodes)
		change(&candidate)
		if !shows(&candidate) {
			return false
		}
		best = candidate
		return true
	}
	for before := -1; before != len(best.Steps)+len(best.Nodes) && !late(); {
		before = len(best.Steps) + len(best.Nodes)
		fewer(func() int { return len(best.Steps) }, func(from, to int) bool {
			return try(func(h *History) { h.leaveOut(from, to) })
		})
		fewer(func() int { return len(best.Nodes) }, func(from, to int) bool {
			return try(func(h *History) { h.Nodes = slices.Delete(h.Nodes, from, to) })
		})
	}
	try(func(h *History) { h.LostPercent = 0 })
	try(func(h *History) { h.MaxDelayMillis = 0 })
	return &best
}

// leaveOut removes steps. The next one comes when it came before.
func (h *History) leaveOut(from, to int) {
	for _, s := range h.Steps[from:to] {
		if to < len(h.Steps) {
			h.Steps[to].After.Duration += s.After.Duration
		}
	}
	h.Steps = slices.Delete(h.Steps, from, to)
}

// fewer removes ranges of what there is, from large ones to single ones, as remove allows it.
func fewer(count func() int, remove func(from, to int) bool) {
	for size := (count() + 1) / 2; size > 0; size /= 2 {
		for from := 0; from < count(); {
			if !remove(from, min(from+size, count())) {
				from += size
			}
		}
	}
}
