package eviction

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestEvictionsAreBoundedInAnyHour(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var h Hourly
	for _, step := range []struct {
		after time.Duration
		n     int
		want  bool
	}{
		{0, 4, false}, {0, 2, true}, {30 * time.Minute, 1, true}, {time.Hour, 1, false}, {61 * time.Minute, 2, true},
		{62 * time.Minute, 1, false}, {91 * time.Minute, 1, true}, {91 * time.Minute, 0, true},
	} {
		if got := h.Take(step.n, 3, start.Add(step.after)); got != step.want {
			t.Errorf("%d more after %s: got %t, want %t", step.n, step.after, got, step.want)
		}
	}
}

// TestNoHourCostsMoreThanIsAllowed looks at every hour that begins with a spending, of any sequence of attempts.
func TestNoHourCostsMoreThanIsAllowed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(0, 20).Draw(t, "most")
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		var h Hourly
		type taken struct {
			at time.Time
			n  int
		}
		var all []taken
		for range rapid.IntRange(1, 60).Draw(t, "attempts") {
			now = now.Add(time.Duration(rapid.IntRange(0, 1800).Draw(t, "seconds")) * time.Second)
			n := rapid.IntRange(0, 8).Draw(t, "n")
			before := h.Left(int64(most), now)
			got := h.Take(n, most, now)
			if got != (int64(n) <= before) {
				t.Fatalf("%d were allowed: %t, with %d left", n, got, before)
			}
			if got {
				all = append(all, taken{now, n})
			}
		}
		for i := range all {
			sum := 0
			for _, other := range all[i:] {
				if other.at.Sub(all[i].at) < time.Hour {
					sum += other.n
				}
			}
			if sum > most {
				t.Fatalf("%d in the hour from %s, %d are allowed", sum, all[i].at, most)
			}
		}
	})
}
