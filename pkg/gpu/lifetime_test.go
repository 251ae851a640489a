package gpu

import (
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
		for _, p := range m.Distribution().portions {
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
			m.Started(long, start)
			m.Started(short, start.Add(time.Hour))
		}, 0.1},
		"all run alike": {func(m *Mix) {
			for _, c := range []Class{short, long} {
				for i := range 1000 {
					at := start.Add(time.Duration(i) * time.Minute)
					m.Started(c, at)
					m.Ended(c, at, at.Add(time.Hour))
				}
			}
		}, 0.1},
		"a job that fails at once counts for little": {func(m *Mix) {
			m.Started(long, start)
			for i := range 1000 {
				at := start.Add(time.Duration(i) * time.Minute)
				m.Started(short, at)
				m.Ended(short, at, at.Add(5*time.Second))
			}
		}, 0.5},
		"an end without a beginning is none": {func(m *Mix) {
			for range 1000 {
				m.Ended(short, start, start)
			}
		}, 0.1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := NewMix()
			for range 10 {
				m.Observe(long, "", true)
				for range 9 {
					m.Observe(short, "", true)
				}
			}
			tc.play(m)
			if got := share(m); math.Abs(got-tc.want) > 0.1*tc.want && !(tc.want == 0.5 && got > 0.5) {
				t.Errorf("the long pods are %.3f of the mix, want about %.3f", got, tc.want)
			}
		})
	}
}

// TestLifetimesAddUp starts and ends pods at random: what runs is what has begun and not ended, and a part is always a part.
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
		owner       string
		each        int
		least, most float64
	}{
		"a controller with four of five pods counts as half":          {owner: "team/flood", each: 4, least: 0.4, most: 0.6},
		"one with nearly all counts for more, but not for all":        {owner: "team/flood", each: 99, least: 0.8, most: 0.95},
		"one with fewer than half counts in full":                     {owner: "team/flood", each: 1, least: 0.45, most: 0.55},
		"pods that no controller made are not kept within any bounds": {owner: "", each: 4, least: 0.78, most: 0.82},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := NewMix()
			for range 400 {
				for range tc.each {
					m.Observe(flood, tc.owner, true)
				}
				m.Observe(other, "", true)
			}
			got := m.Distribution().portions[0]
			if got.Class != flood || got.Fraction < tc.least || got.Fraction > tc.most {
				t.Errorf("%.3f of the mix, want %.2f to %.2f", got.Fraction, tc.least, tc.most)
			}
		})
	}
	t.Run("the number of owners is bounded", func(t *testing.T) {
		t.Parallel()
		var o owners
		for i := range 10 * mostOwners {
			o.part(string(rune('a'+i%26))+time.Duration(i).String(), 1)
		}
		if len(o.arrived) > mostOwners+1 {
			t.Errorf("%d owners are kept", len(o.arrived))
		}
	})
}
