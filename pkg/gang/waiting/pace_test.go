package waiting

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPace(t *testing.T) {
	t.Parallel()
	const long = 100 * time.Millisecond
	for _, tc := range []struct {
		name string
		do   func(p *Pace)
		// namespace asks for the turn after that time.
		namespace string
		after     time.Duration
		want      time.Duration
	}{
		{"a namespace without plans does not wait", func(*Pace) {}, "a", 0, 0},
		{"short plans make nobody wait", func(p *Pace) {
			for range 1000 {
				p.Ran("a", 4*time.Millisecond, t0)
			}
		}, "a", 0, 0},
		{"a rest of half its time follows a long plan", func(p *Pace) { p.Ran("a", long, t0) }, "a", 0, long / 2},
		{"the next gang plans after the rest", func(p *Pace) { p.Ran("a", long, t0) }, "a", long / 2, 0},
		{"gangs of other namespaces do not wait", func(p *Pace) { p.Ran("a", long, t0) }, "b", 0, 0},
		{"two namespaces with long plans have one line", func(p *Pace) {
			p.Ran("a", long, t0)
			p.Ran("b", 2*long, t0)
		}, "a", 0, long},
		{"one gang plans at a time", func(p *Pace) {
			p.Ran("a", long, t0)
			p.Begin("a", t0.Add(long/2))
		}, "a", long/2 + time.Millisecond, pacePatience - time.Millisecond},
		{"a gang that does not plan is not waited for without end", func(p *Pace) {
			p.Ran("a", long, t0)
			p.Begin("a", t0.Add(long/2))
		}, "a", long/2 + pacePatience, 0},
		{"a namespace is free again some time after its last long plan", func(p *Pace) {
			p.Ran("a", long, t0)
			p.Ran("b", long, t0.Add(paceMemory))
		}, "a", paceMemory, 0},
		{"short plans make a namespace free again", func(p *Pace) {
			p.Ran("a", long, t0)
			for range 10 {
				p.Ran("a", time.Millisecond, t0)
			}
		}, "a", 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := &Pace{}
			tc.do(p)
			if got := p.Begin(tc.namespace, t0.Add(tc.after)); got != tc.want {
				t.Errorf("waits for %s, want %s", got, tc.want)
			}
		})
	}
}

// TestARestFollowsEachLongPlan lets the gangs of some namespaces plan, all of them for long. Each has its turn, and the
// plans take two thirds of the time at most.
func TestARestFollowsEachLongPlan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, now, planned := &Pace{}, t0, time.Duration(0)
		left := map[string]int{}
		for n := range rapid.IntRange(1, 4).Draw(t, "namespaces") {
			name := fmt.Sprint(n)
			p.Ran(name, 100*time.Millisecond, now)
			left[name] = rapid.IntRange(1, 12).Draw(t, "gangs")
		}
		for len(left) > 0 {
			if now.Sub(t0) > time.Minute {
				t.Fatalf("gangs are never planned: %v", left)
			}
			for name := range left {
				if p.Begin(name, now) > 0 {
					continue
				}
				took := time.Duration(rapid.IntRange(60, 100).Draw(t, "ms")) * time.Millisecond
				now, planned = now.Add(took), planned+took
				p.Ran(name, took, now)
				if left[name]--; left[name] == 0 {
					delete(left, name)
				}
			}
			now = now.Add(time.Millisecond)
		}
		if most := now.Sub(t0) * 2 / 3; planned > most+100*time.Millisecond {
			t.Fatalf("plans took %s of %s", planned, now.Sub(t0))
		}
	})
}
