package mix

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestArrivalsCountByHowLongTheyRun(t *testing.T) {
	t.Parallel()
	short, long := Class{CPUMilli: 1000, Count: 1, Milli: 500}, Class{CPUMilli: 1000, Count: 8, Milli: WholeMilli}
	start := epoch.Add(1000 * time.Hour)
	share := func(m *Mix) float64 {
		for _, p := range m.Distribution().Portions {
			if p.Class == long {
				return p.Fraction
			}
		}
		return 0
	}
	for name, tc := range map[string]struct {
		play func(m *Mix)
		want float64
	}{
		"nothing has ended": {func(m *Mix) {
			m.Started(long, Owner{}, start)
			m.Started(short, Owner{}, start.Add(time.Hour))
		}, 0.1},
		"all run alike": {func(m *Mix) {
			for _, c := range []Class{short, long} {
				for i := range 1000 {
					at := start.Add(time.Duration(i) * time.Minute)
					m.Started(c, Owner{}, at)
					m.Ended(c, Owner{}, at, at.Add(time.Hour))
				}
			}
		}, 0.1},
		"a job that fails at once counts for little": {func(m *Mix) {
			m.Started(long, Owner{}, start)
			for i := range 1000 {
				at := start.Add(time.Duration(i) * time.Minute)
				m.Started(short, Owner{}, at)
				m.Ended(short, Owner{}, at, at.Add(5*time.Second))
			}
		}, 0.5},
		"an end without a beginning is none": {func(m *Mix) {
			for range 1000 {
				m.Ended(short, Owner{}, start, start)
			}
		}, 0.1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := New()
			for range 10 {
				m.Observe(long, Owner{}, true)
				for range 9 {
					m.Observe(short, Owner{}, true)
				}
			}
			tc.play(m)
			if got := share(m); math.Abs(got-tc.want) > 0.1*tc.want && !(tc.want == 0.5 && got > 0.5) {
				t.Errorf("the long pods are %.3f of the mix, want about %.3f", got, tc.want)
			}
		})
	}
}

// TestLifetimesAddUp starts and ends pods at random: what runs is what has begun and not ended, and a part is always a
// part.
func TestLifetimesAddUp(t *testing.T) {
	t.Parallel()
	classes := []Class{{Count: 1}, {Count: 2}, {Count: 3}}
	rapid.Check(t, func(t *rapid.T) {
		var l lifetimes
		type run struct {
			c  Class
			at time.Time
		}
		var running []run
		now := epoch
		for range rapid.IntRange(1, 100).Draw(t, "events") {
			now = now.Add(time.Duration(rapid.IntRange(0, 1e6).Draw(t, "ms")) * time.Millisecond)
			if len(running) > 0 && rapid.Bool().Draw(t, "end") {
				i := rapid.IntRange(0, len(running)-1).Draw(t, "which")
				l.ended(running[i].c, running[i].at, now)
				running[i] = running[len(running)-1]
				running = running[:len(running)-1]
				continue
			}
			c := rapid.SampledFrom(classes).Draw(t, "class")
			l.started(c, now)
			running = append(running, run{c, now})
		}
		if l.all.running != len(running) {
			t.Fatalf("%d run, want %d", l.all.running, len(running))
		}
		if len(running) == 0 && math.Abs(l.all.began) > 1e-6 {
			t.Fatalf("nothing runs, but the sum of beginnings is %v", l.all.began)
		}
		for _, c := range classes {
			if p := l.part(c); !(p >= shortestPart && p <= 1) {
				t.Fatalf("part %v", p)
			}
		}
	})
}

func TestNoOwnerIsTheWholeWorkload(t *testing.T) {
	t.Parallel()
	flood, other := Class{Count: 1, Milli: 100}, Class{Count: 8, Milli: WholeMilli}
	for name, tc := range map[string]struct {
		owner Owner
		each  int
		// ran is how long each pod of the flood runs, where those of others run for an hour; with 0 none ends.
		ran         time.Duration
		least, most float64
	}{
		"a controller with four of five pods counts as half":       {Owner{"a", "team/flood"}, 4, 0, 0.4, 0.6},
		"one with nearly all counts for more, but not for all":     {Owner{"a", "team/flood"}, 99, 0, 0.8, 0.95},
		"one with fewer than half counts in full":                  {Owner{"a", "team/flood"}, 1, 0, 0.45, 0.55},
		"a namespace whose pods end at once counts as half":        {Owner{Namespace: "a"}, 4, time.Second, 0, 0.6},
		"one whose pods run as long as those of others is at work": {Owner{Namespace: "a"}, 4, time.Hour, 0.75, 0.85},
		"one of which none has ended may be at work":               {Owner{Namespace: "a"}, 4, 0, 0.75, 0.85},
		"many controllers of one namespace count as one of it":     {Owner{"a", "each its own"}, 4, time.Second, 0, 0.6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, at := New(), epoch
			run := func(c Class, of Owner, ran time.Duration) {
				m.Observe(c, of, true)
				m.Started(c, of, at)
				if ran > 0 {
					m.Ended(c, of, at, at.Add(ran))
				}
			}
			for i := range 400 {
				for j := range tc.each {
					of := tc.owner
					if of.Controller == "each its own" {
						of.Controller = fmt.Sprint(i, "-", j)
					}
					run(flood, of, tc.ran)
				}
				at = at.Add(time.Hour)
				run(other, Owner{Namespace: fmt.Sprint("b", i%3)}, min(time.Hour, tc.ran*3600))
			}
			got := m.Distribution().Portions[0]
			if got.Class != flood || got.Fraction < tc.least || got.Fraction > tc.most {
				t.Errorf("%.3f of the mix, want %.2f to %.2f", got.Fraction, tc.least, tc.most)
			}
		})
	}
	t.Run("the number of owners is bounded", func(t *testing.T) {
		t.Parallel()
		var o owners
		for i := range 10 * mostOwners {
			of := Owner{fmt.Sprint("namespace-", i), fmt.Sprint("controller-", i)}
			o.part(of, 1, epoch)
			o.started(of, epoch)
		}
		if n := max(len(o.controllers.arrived), len(o.namespaces.arrived), len(o.lives)); n > mostOwners+1 {
			t.Errorf("%d owners are kept", n)
		}
	})
}
