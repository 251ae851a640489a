package eviction

import (
	"slices"
	"time"
)

// Hourly counts what evictions cost, such as their number; so much is allowed in any hour.
type Hourly struct {
	// spent is that of the last hour, in order.
	spent []spending
}

type spending struct {
	at     time.Time
	amount int64
}

// Left returns how much is allowed now if most is in any hour.
func (h *Hourly) Left(most int64, now time.Time) int64 {
	ended, _ := slices.BinarySearchFunc(h.spent, now.Add(-time.Hour),
		func(s spending, t time.Time) int { return s.at.Compare(t) })
	h.spent = slices.Delete(h.spent, 0, ended)
	for _, s := range h.spent {
		most -= s.amount
	}
	return most
}

// Spend counts the amount, whether it is allowed or not.
func (h *Hourly) Spend(amount int64, now time.Time) {
	if amount > 0 {
		h.spent = append(h.spent, spending{now, amount})
	}
}

// Take reports whether n evictions are allowed now if most are in any hour, and counts them if they are.
func (h *Hourly) Take(n, most int, now time.Time) bool {
	if int64(n) > h.Left(int64(most), now) {
		return false
	}
	h.Spend(int64(n), now)
	return true
}
