package starttime

import (
	"time"

	"berth.dev/berth/pkg/runtimes"
)

// Entry says why a pod may enter a node that is kept for a gang.
type Entry int

const (
	// Refused is for pods that may not.
	Refused Entry = iota
	// Gone is for pods that are gone by the likely start of the gang.
	Gone
	// Late is for pods that are surely gone by the time by which the gang is to start at the latest.
	Late
	// Senior is for pods that have waited for much longer than the gang.
	Senior
)

// MayEnter reports whether a pod may enter a node of the reservation now: what is left forecasts its run time, and it
// has waited for some time. Whether the node has room for the pod beside the gang is the caller's business.
func (s *Settings) MayEnter(r *Reservation, left *runtimes.Forecast, waited time.Duration, now time.Time) Entry {
	start := r.At.Add(r.Start.At(0.5)).Sub(now)
	if r.Firm {
		// A firm start does not move, or pods that are a little late would put it off again and again.
		if left.GoneBy(min(start, r.Until.Sub(now))) >= s.Sure {
			return Gone
		}
		return Refused
	}
	switch {
	case left.GoneBy(start) >= s.Enter:
		return Gone
	case left.GoneBy(r.Until.Sub(now)) >= s.Sure:
		return Late
	case s.Seniority > 0 && float64(waited) > s.Seniority*float64(r.waited+now.Sub(r.At)):
		return Senior
	}
	return Refused
}
