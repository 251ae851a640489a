package gang

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func named(name string) ID { return ID{Namespace: "ns", Name: name} }

// of returns the key of a group of that priority.
func of(priority int32) Key { return Key{Priority: priority, Time: t0} }

// turnsOf returns the groups that Next gives until it gives none, each of which fails at once.
func turnsOf(t *testing.T, r *Rounds, keys map[string]Key, now time.Time) []string {
	t.Helper()
	var got []string
	for {
		id, ok, _ := r.Next(now)
		if !ok {
			return got
		}
		if got = append(got, id.Name); len(got) > 100 {
			t.Fatalf("Next gives groups without end: %v", got)
		}
		r.Wait(id, keys[id.Name], now, now)
	}
}

func TestRounds(t *testing.T) {
	t.Parallel()
	keys := map[string]Key{"low": of(1), "middle": of(5), "high": of(9)}
	late := t0.Add(time.Second)
	for _, tc := range []struct {
		name string
		do   func(r *Rounds)
		want []string
		wait time.Duration
	}{
		{"a group that nothing touched is not tried", func(*Rounds) {}, nil, 0},
		{"the most important of the touched groups comes first", func(r *Rounds) {
			for _, name := range []string{"low", "high", "middle"} {
				r.Touch(named(name), t0)
			}
		}, []string{"high", "middle", "low"}, 0},
		{"two touches are one turn", func(r *Rounds) {
			r.Touch(named("low"), t0)
			r.Touch(named("low"), t0)
		}, []string{"low"}, 0},
		{"a group in back-off waits for its end", func(r *Rounds) {
			r.Wait(named("high"), of(9), late, t0)
			r.Touch(named("high"), t0)
			r.Touch(named("low"), t0)
		}, []string{"low"}, time.Second},
		{"a back-off that is cut short ends at once", func(r *Rounds) {
			r.Wait(named("high"), of(9), late, t0)
			r.Touch(named("high"), t0)
			r.Wait(named("high"), of(9), t0, t0)
		}, []string{"high"}, 0},
		{"a key that changes while the group waits counts", func(r *Rounds) {
			r.Touch(named("high"), t0)
			r.Touch(named("low"), t0)
			r.Wait(named("low"), of(10), t0, t0)
		}, []string{"low", "high"}, 0},
		{"an attempt that begins elsewhere answers the touches before it", func(r *Rounds) {
			r.Touch(named("low"), t0)
			r.Begin(named("low"))
			r.Wait(named("low"), of(1), t0, t0)
		}, nil, 0},
		{"an attempt that begins elsewhere does not answer the touches after it", func(r *Rounds) {
			r.Begin(named("low"))
			r.Touch(named("low"), t0)
			r.Wait(named("low"), of(1), t0, t0)
		}, []string{"low"}, 0},
		{"a group that is being tried has no turn", func(r *Rounds) {
			r.Begin(named("low"))
			r.Touch(named("low"), t0)
		}, nil, 0},
		{"a group that was dropped has no turn", func(r *Rounds) {
			r.Touch(named("low"), t0)
			r.Drop(named("low"))
			r.Touch(named("low"), t0)
		}, nil, 0},
		{"a group whose first attempt touches reached is due after it", func(r *Rounds) {
			r.Begin(named("new"))
			r.Touch(named("new"), t0)
			r.Wait(named("new"), of(3), t0, t0)
		}, []string{"new"}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := NewRounds()
			for name, key := range keys {
				r.Wait(named(name), key, t0, t0)
			}
			tc.do(r)
			got := turnsOf(t, r, keys, t0)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("turns (-want +got):\n%s", diff)
			}
			if _, _, wait := r.Next(t0); wait != tc.wait {
				t.Errorf("the next back-off ends in %s, want %s", wait, tc.wait)
			}
		})
	}
}

func TestRoundsDoNotLetTheImportantComeTwice(t *testing.T) {
	t.Parallel()
	r := NewRounds()
	for name, key := range map[string]Key{"low": of(1), "high": of(9)} {
		r.Wait(named(name), key, t0, t0)
		r.Touch(named(name), t0)
	}
	var got []string
	for range 6 {
		id, ok, _ := r.Next(t0)
		if !ok {
			t.Fatal("no group is due although both groups are touched all the time")
		}
		got = append(got, id.Name)
		for _, name := range []string{"low", "high"} {
			r.Touch(named(name), t0)
		}
		r.Wait(id, map[string]Key{"low": of(1), "high": of(9)}[id.Name], t0, t0)
	}
	if diff := cmp.Diff([]string{"high", "low", "high", "low", "high", "low"}, got); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
}

func TestRoundsReachTheLeastImportantUnderAStreamOfNewGroups(t *testing.T) {
	t.Parallel()
	const k = 50
	r := NewRounds()
	least := named("least")
	enter := func(id ID, key Key) {
		r.Begin(id)
		r.Wait(id, key, t0, t0)
		r.Touch(id, t0)
	}
	enter(least, of(0))
	for i := range k - 1 {
		enter(named(fmt.Sprint(i)), of(1))
	}
	fresh, turns, longest, gap := k, 0, 0, 0
	for range 100 * k {
		id, ok, _ := r.Next(t0)
		if !ok {
			t.Fatal("no group is due although all groups are touched all the time")
		}
		gap++
		if id == least {
			turns++
			longest, gap = max(longest, gap), 0
			enter(least, of(0))
			continue
		}
		// The group goes and a more important one comes instead, touched at once.
		r.Drop(id)
		fresh++
		enter(named(fmt.Sprint(fresh)), of(int32(fresh)))
	}
	if longest > 2*k-1 || turns < 100*k/(2*k-1) {
		t.Errorf("the least important of %d groups had %d turns, the longest wait was %d turns; want at most %d", k, turns, longest, 2*k-1)
	}
}

// naive is Rounds by definition: it looks at all groups each time.
type naive struct {
	round  int
	now    time.Time
	groups map[ID]*naiveGroup
}

type naiveGroup struct {
	key             Key
	retryAt         time.Time
	tried           int
	trying, touched bool
	// known is the largest number of groups that were known at a time since the group was due, and overtaken the number
	// of groups that were tried since; due says whether it is.
	due              bool
	known, overtaken int
}

func (n *naive) ready(g *naiveGroup) bool {
	return !g.trying && g.touched && !g.retryAt.After(n.now)
}

// best returns the group whose turn it is in a round, if any.
func (n *naive) best(round int) (ID, bool) {
	var first ID
	found := false
	for id, g := range n.groups {
		if !n.ready(g) || g.tried == round {
			continue
		}
		if !found || g.key.Less(n.groups[first].key) || (!n.groups[first].key.Less(g.key) && id.Name < first.Name) {
			first, found = id, true
		}
	}
	return first, found
}

// watch notes which groups are due and checks that none was overtaken more often than is promised.
func (n *naive) watch(t *rapid.T, tried ID) {
	for id, g := range n.groups {
		if id == tried || !n.ready(g) {
			g.due, g.known, g.overtaken = false, 0, 0
			continue
		}
		if g.due && tried != (ID{}) {
			g.overtaken++
		}
		g.due = true
		g.known = max(g.known, len(n.groups))
		if g.overtaken > 2*g.known-2 {
			t.Fatalf("%s was due and %d others were tried, with %d groups known", id, g.overtaken, g.known)
		}
	}
}

func TestRoundsAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := NewRounds()
		n := &naive{round: 1, now: t0, groups: map[ID]*naiveGroup{}}
		// New names keep coming, as new groups do.
		next := 0
		pick := func() ID {
			if rapid.IntRange(0, 5).Draw(t, "new") == 0 {
				next++
			}
			return named(fmt.Sprintf("g%03d", rapid.IntRange(max(0, next-12), next).Draw(t, "group")))
		}
		eager := rapid.Bool().Draw(t, "touch everything all the time")
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			tried := ID{}
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				n.now = n.now.Add(time.Duration(rapid.IntRange(0, 4).Draw(t, "seconds")) * time.Second)
			case 1:
				id := pick()
				r.Begin(id)
				if n.groups[id] == nil {
					n.groups[id] = &naiveGroup{}
				}
				*n.groups[id] = naiveGroup{key: n.groups[id].key, retryAt: n.groups[id].retryAt, tried: n.round, trying: true}
			case 2, 3, 4:
				id := pick()
				key := of(int32(rapid.IntRange(0, 4).Draw(t, "priority")))
				retryAt := n.now.Add(time.Duration(rapid.IntRange(-3, 3).Draw(t, "back-off")) * time.Second)
				r.Wait(id, key, retryAt, n.now)
				if n.groups[id] == nil {
					n.groups[id] = &naiveGroup{tried: n.round}
				}
				g := n.groups[id]
				g.key, g.retryAt, g.trying = key, retryAt, false
			case 5:
				id := pick()
				r.Touch(id, n.now)
				if g := n.groups[id]; g != nil {
					g.touched = true
				}
			case 6:
				id := pick()
				if rapid.Bool().Draw(t, "drop") {
					r.Drop(id)
					delete(n.groups, id)
				}
			default:
				id, ok, wait := r.Next(n.now)
				want, due := n.best(n.round)
				if !due {
					n.round++
					want, due = n.best(n.round)
				}
				if id != want || ok != due {
					t.Fatalf("Next gives %v (%t), want %v (%t)", id, ok, want, due)
				}
				if !ok {
					if rest := n.rest(); wait != rest {
						t.Fatalf("the first back-off ends in %s, want %s", wait, rest)
					}
					break
				}
				if g := n.groups[id]; !g.touched || g.retryAt.After(n.now) || g.trying {
					t.Fatalf("%s is tried with touched %t, back-off until %s at %s", id, g.touched, g.retryAt, n.now)
				}
				tried = id
				g := n.groups[id]
				g.tried, g.trying, g.touched = n.round, true, false
				if rapid.Bool().Draw(t, "fails at once") {
					g.trying, g.retryAt = false, n.now
					r.Wait(id, g.key, n.now, n.now)
				}
			}
			n.watch(t, tried)
			if eager {
				for id, g := range n.groups {
					r.Touch(id, n.now)
					g.touched = true
				}
			}
		}
	})
}

// rest is the time until the first back-off ends of a group that was touched.
func (n *naive) rest() time.Duration {
	var first time.Duration
	for _, g := range n.groups {
		if left := g.retryAt.Sub(n.now); g.touched && !g.trying && left > 0 && (first == 0 || left < first) {
			first = left
		}
	}
	return first
}

// BenchmarkRounds is one turn with 3,000 blocked groups: an event touches a group, the best is tried, and fails.
func BenchmarkRounds(b *testing.B) {
	const groups = 3000
	r := NewRounds()
	ids := make([]ID, groups)
	keys := make([]Key, groups)
	for i := range ids {
		ids[i], keys[i] = named(fmt.Sprintf("g%04d", i)), Key{Priority: int32(i * 7919 % 10), Time: t0.Add(time.Duration(i*104729%groups) * time.Second)}
	}
	index := map[ID]int{}
	for i, id := range ids {
		index[id] = i
		r.Wait(id, keys[i], t0, t0)
		r.Touch(id, t0)
	}
	b.ReportAllocs()
	for b.Loop() {
		id, ok, _ := r.Next(t0)
		if !ok {
			b.Fatal("no group is due")
		}
		r.Touch(id, t0)
		r.Wait(id, keys[index[id]], t0, t0)
	}
}
