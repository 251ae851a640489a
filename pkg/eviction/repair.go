package eviction

import (
	"slices"
	"time"

	"berth.dev/berth/pkg/gang"
)

const (
	// gather is how long no further member may fail before the gang is looked at: faults that come together are one.
	gather = time.Second
	// lookAgain is how often room is looked for again, as that for a replacement may have been taken or come free.
	lookAgain = 5 * time.Second
)

// Repair follows the members of one gang that run on failing hardware. Its zero value knows of none.
type Repair struct {
	failing []gang.UID
	// changed is when the last of them failed.
	changed time.Time
	// looked is when room for their replacements was last looked for.
	looked time.Time
	told   bool
}

// See takes the members that are on failing hardware now, in any order. Further ones are a new event; fewer are none.
func (r *Repair) See(failing []gang.UID, now time.Time) {
	failing = slices.Sorted(slices.Values(failing))
	for _, uid := range failing {
		if _, known := slices.BinarySearch(r.failing, uid); !known {
			r.changed, r.looked, r.told = now, time.Time{}, false
			break
		}
	}
	r.failing = failing
}

// Due reports whether room for replacements is to be looked for now, and notes that it is.
func (r *Repair) Due(now time.Time) bool {
	if len(r.failing) == 0 || now.Sub(r.changed) < gather || !r.looked.IsZero() && now.Sub(r.looked) < lookAgain {
		return false
	}
	r.looked = now
	return true
}

// Keeps reports whether room for replacements is kept yet, as it is for that long after the last member failed.
func (r *Repair) Keeps(most time.Duration, now time.Time) bool {
	return len(r.failing) > 0 && now.Before(r.changed.Add(gather+most))
}

// Tell reports whether the gang is to be told of the members, which it is once.
func (r *Repair) Tell() bool {
	first := !r.told
	r.told = true
	return first
}
