package eviction

import "time"

// Notice is what one victim is told before it is evicted, so that it can save its work.
type Notice struct {
	// Length is how long it may take; 0 for a pod that wants none.
	Length time.Duration
	// Given is when it was told, the zero time if it has yet to be.
	Given time.Time
	// Saved is when its work was last saved.
	Saved time.Time
}

// NoticeOf returns the notice of a pod that was told at a time, or has yet to be.
func (w *Work) NoticeOf(given, now time.Time, most Limits) Notice {
	return Notice{Length: min(w.Notice, most.Notice), Given: given, Saved: w.Since(now)}
}

// end returns when the notice ends: after its length, or as soon as the work is saved that was done when it was given.
func (n *Notice) end(now time.Time) time.Time {
	switch {
	case n.Length <= 0:
		return now
	case n.Given.IsZero():
		return now.Add(n.Length)
	case n.Saved.After(n.Given):
		return now
	}
	return n.Given.Add(n.Length)
}

// NoticesEnd returns when all victims of one eviction may go, not before now. None goes before the others can: the
// eviction may yet turn out not to be needed. First is when the first was told for the sake of whom they go, the zero
// time if none was: however often other victims are chosen, they have notice for no longer than the most after that.
func NoticesEnd(all []Notice, first, now time.Time, most time.Duration) time.Time {
	if first.IsZero() {
		first = now
	}
	last := now
	for i := range all {
		if end := all[i].end(now); end.After(last) {
			last = end
		}
	}
	if latest := first.Add(most); last.After(latest) {
		last = latest
	}
	if last.Before(now) {
		return now
	}
	return last
}
