package retry

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth.dev/berth/pkg/gang"
)

func inNamespace(namespace string, i int) gang.ID {
	return gang.ID{Namespace: namespace, Name: fmt.Sprint(i)}
}

// given returns the groups that Next gives at that time.
func given(p *Pace, now time.Time) (names []string, wait time.Duration) {
	for {
		id, ok, wait := p.Next(now)
		if !ok {
			return names, wait
		}
		names = append(names, id.Namespace+"/"+id.Name)
	}
}

func TestPace(t *testing.T) {
	t.Parallel()
	const long = 100 * time.Millisecond
	after := func(d time.Duration) time.Time { return t0.Add(d) }
	a, b := func(i int) gang.ID { return inNamespace("a", i) }, func(i int) gang.ID { return inNamespace("b", i) }
	slow := func(p *Pace) {
		p.Ran(a(0), long, t0)
		for i := 1; i <= 3; i++ {
			p.Hold(a(i), t0)
		}
	}
	for _, tc := range []struct {
		name string
		do   func(t *testing.T, p *Pace)
		at   time.Duration
		want []string
		wait time.Duration
	}{
		{"without long plans nobody is held back", func(t *testing.T, p *Pace) {
			for i := range 1000 {
				now := after(time.Duration(i) * 10 * time.Millisecond)
				if p.Hold(a(i), now) || !p.Admit(a(i), now) {
					t.Fatalf("group %d is held back", i)
				}
				p.Ran(a(i), 4*time.Millisecond, now)
			}
		}, 10 * time.Second, nil, 0},
		{"many short plans at once are long together", func(t *testing.T, p *Pace) {
			for i := range 100 {
				p.Ran(a(i), 2*time.Millisecond, t0)
			}
			if !p.Hold(a(100), t0) {
				t.Error("the next one is not held back")
			}
		}, time.Millisecond, []string{"a/100"}, 0},
		{"after a long plan all rest", func(_ *testing.T, p *Pace) { slow(p) }, 0, nil, long / 2},
		{"the first in line has the next turn, alone", func(_ *testing.T, p *Pace) {
			slow(p)
			p.Ran(a(0), long, t0)
		}, long / 2, []string{"a/1"}, pacePatience},
		{"one that does not take its turn is not waited for", func(t *testing.T, p *Pace) {
			slow(p)
			p.Ran(a(0), long, t0)
			if got, _ := given(p, after(long/2)); !slices.Equal(got, []string{"a/1"}) {
				t.Errorf("got %v", got)
			}
		}, long/2 + pacePatience, []string{"a/2"}, pacePatience},
		{"those who stand in line are free once plans are short", func(_ *testing.T, p *Pace) {
			slow(p)
			p.Ran(a(0), long, t0)
			for i := range 10 {
				p.Ran(a(0), time.Microsecond, after(time.Duration(i)*time.Millisecond))
			}
		}, 2 * paceMost, []string{"a/1", "a/2", "a/3"}, 0},
		{"what was long ago is not held against a namespace", func(t *testing.T, p *Pace) {
			p.Ran(a(0), time.Hour, t0)
			if p.Hold(a(1), after(2*paceMost)) {
				t.Error("is held back")
			}
		}, 2 * paceMost, nil, 0},
		{"those who are in the queue already are turned away", func(t *testing.T, p *Pace) {
			slow(p)
			if p.Admit(a(1), t0) || p.Admit(a(9), t0) || !p.Admit(b(1), t0) {
				t.Error("want only another namespace to be let in")
			}
		}, 0, nil, long / 2},
		{"the one whose turn it is may plan", func(t *testing.T, p *Pace) {
			slow(p)
			p.Ran(a(0), long, t0)
			if got, _ := given(p, after(long/2)); !slices.Equal(got, []string{"a/1"}) || !p.Admit(a(1), after(long/2)) ||
				p.Admit(a(2), after(long/2)) {
				t.Errorf("got %v, want the turn of a/1", got)
			}
		}, long / 2, nil, pacePatience},
		{"one that is recalled comes before those that wait for their first turn", func(_ *testing.T, p *Pace) {
			slow(p)
			p.Ran(a(0), long, t0)
			p.Recall(a(3), t0)
		}, long / 2, []string{"a/3"}, pacePatience},
		{"those that are recalled keep their order", func(t *testing.T, p *Pace) {
			slow(p)
			p.Ran(a(0), long, t0)
			p.Recall(a(9), t0)
			p.Recall(a(2), t0)
			p.Hold(a(9), t0)
			if got, _ := given(p, after(long/2)); !slices.Equal(got, []string{"a/9"}) {
				t.Errorf("got %v", got)
			}
		}, long/2 + pacePatience, []string{"a/2"}, pacePatience},
		{"one whose pods are long in the queue may plan when others have been given the turn", func(t *testing.T, p *Pace) {
			slow(p)
			p.Ran(a(0), long, t0)
			given(p, after(long/2))
			late := after(long/2 + pacePatience)
			given(p, late)
			if !p.Admit(a(1), late) || p.Admit(a(1), late) {
				t.Error("want a/1 to be let in once")
			}
			p.Ran(a(1), long, late)
			if p.Admit(a(2), late) {
				t.Error("a/2 is let in while all rest")
			}
		}, long/2 + pacePatience + long, []string{"a/3"}, 0},
		{"namespaces take turns", func(t *testing.T, p *Pace) {
			slow(p)
			p.Ran(a(0), long, t0)
			p.Ran(b(0), long, t0)
			p.Hold(b(1), t0)
			p.Hold(b(2), t0)
			var got []string
			for now := t0; len(got) < 5; now = now.Add(long) {
				id, ok, _ := p.Next(now)
				if !ok {
					continue
				}
				got = append(got, id.Namespace+"/"+id.Name)
				p.Ran(id, long, now.Add(long/2))
			}
			if diff := cmp.Diff([]string{"a/1", "b/1", "a/2", "b/2", "a/3"}, got); diff != "" {
				t.Error(diff)
			}
		}, time.Hour, nil, 0},
		{"one that is gone is forgotten", func(_ *testing.T, p *Pace) {
			slow(p)
			for i := range 3 {
				p.Forget(a(i))
			}
		}, long / 2, []string{"a/3"}, 0},
		{"who stands in line twice has one turn", func(_ *testing.T, p *Pace) {
			slow(p)
			p.Hold(a(1), t0)
			for i := range 10 {
				p.Ran(a(0), 0, after(time.Duration(i)))
			}
		}, time.Hour, []string{"a/1", "a/2", "a/3"}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := &Pace{}
			tc.do(t, p)
			got, wait := given(p, after(tc.at))
			if diff := cmp.Diff(tc.want, got); diff != "" || wait != tc.wait {
				t.Errorf("%s, wait %s, want %s", diff, wait, tc.wait)
			}
		})
	}
}

// TestOthersWaitForOnePlan lets many groups of some namespaces plan at the same time, some several times. All of them
// come to their end, and once no namespace is free a rest follows every plan.
func TestOthersWaitForOnePlan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const tick = time.Millisecond
		p := &Pace{}
		left, invited := map[gang.ID]int{}, []gang.ID{}
		namespaces := rapid.IntRange(1, 4).Draw(t, "namespaces")
		for n := range namespaces {
			for i := range rapid.IntRange(1, 12).Draw(t, "groups") {
				id := inNamespace(fmt.Sprint(n), i)
				left[id] = rapid.IntRange(1, 4).Draw(t, "plans")
				invited = append(invited, id)
			}
		}
		// back are groups whose rest after a plan ends at that time.
		back := map[gang.ID]time.Time{}
		now, rest := t0, t0
		for len(left) > 0 {
			if now.Sub(t0) > time.Minute {
				t.Fatalf("%d groups are never planned: %v", len(left), left)
			}
			for id, at := range back {
				if !now.Before(at) {
					delete(back, id)
					if !p.Hold(id, now) {
						invited = append(invited, id)
					}
				}
			}
			for {
				id, ok, _ := p.Next(now)
				if !ok {
					break
				}
				invited = append(invited, id)
			}
			if len(invited) == 0 {
				now = now.Add(tick)
				continue
			}
			id := invited[0]
			invited = invited[1:]
			if !p.Admit(id, now) {
				back[id] = now
				continue
			}
			took := time.Duration(rapid.IntRange(60, 100).Draw(t, "ms")) * time.Millisecond
			if left[id] > 1 {
				took = 100 * time.Millisecond
			}
			if now.Before(rest) && !slices.ContainsFunc(slices.Collect(maps.Keys(left)),
				func(id gang.ID) bool { l := p.lanes[id.Namespace]; return l == nil || !l.slow }) {
				t.Fatalf("the rest ends %s too early", rest.Sub(now))
			}
			now = now.Add(took)
			left[id]--
			p.Ran(id, took, now)
			if p.lanes[id.Namespace].slow {
				rest = now.Add(took / 2)
			}
			if left[id] == 0 {
				delete(left, id)
			} else {
				back[id] = now.Add(50 * time.Millisecond)
			}
		}
		if p.tidy(now.Add(time.Hour)); len(p.lanes) > 0 || len(p.order) > 0 {
			t.Fatalf("namespaces are remembered: %v", p.order)
		}
	})
}
