package waiting

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth.dev/berth/pkg/gang"
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func named(name string) gang.ID { return gang.ID{Namespace: "ns", Name: name} }

// of returns the key of a group of that priority.
func of(priority int32) gang.Key { return gang.Key{Priority: priority, Time: t0} }

// turnsOf returns the groups that Next gives until it gives none; each fails at once.
func turnsOf(t *testing.T, q *Queue, keys map[string]gang.Key, now time.Time) []string {
	t.Helper()
	var got []string
	for {
		id, ok, _ := q.Next(now)
		if !ok {
			return got
		}
		if got = append(got, id.Name); len(got) > 100 {
			t.Fatalf("Next gives groups without end: %v", got)
		}
		q.Wait(id, keys[id.Name], now, now)
	}
}

func TestQueue(t *testing.T) {
	t.Parallel()
	keys := map[string]gang.Key{"low": of(1), "middle": of(5), "high": of(9)}
	late := t0.Add(time.Second)
	for _, tc := range []struct {
		name string
		do   func(q *Queue)
		want []string
		wait time.Duration
	}{
		{"a group that nothing touched is not tried", func(*Queue) {}, nil, 0},
		{"the most important of the touched groups comes first", func(q *Queue) {
			for _, name := range []string{"low", "high", "middle"} {
				q.Retry(named(name), t0)
			}
		}, []string{"high", "middle", "low"}, 0},
		{"two touches are one turn", func(q *Queue) {
			q.Retry(named("low"), t0)
			q.Retry(named("low"), t0)
		}, []string{"low"}, 0},
		{"a group in back-off waits for its end", func(q *Queue) {
			q.Wait(named("high"), of(9), late, t0)
			q.Retry(named("high"), t0)
			q.Retry(named("low"), t0)
		}, []string{"low"}, time.Second},
		{"a back-off that is cut short ends at once", func(q *Queue) {
			q.Wait(named("high"), of(9), late, t0)
			q.Retry(named("high"), t0)
			q.Wait(named("high"), of(9), t0, t0)
		}, []string{"high"}, 0},
		{"a key that changes while the group waits counts", func(q *Queue) {
			q.Retry(named("high"), t0)
			q.Retry(named("low"), t0)
			q.Wait(named("low"), of(10), t0, t0)
		}, []string{"low", "high"}, 0},
		{"an attempt that begins elsewhere answers the touches before it", func(q *Queue) {
			q.Retry(named("low"), t0)
			q.begin(q.entry(named("low")))
			q.Wait(named("low"), of(1), t0, t0)
		}, nil, 0},
		{"an attempt that begins elsewhere does not answer the touches after it", func(q *Queue) {
			q.begin(q.entry(named("low")))
			q.Retry(named("low"), t0)
			q.Wait(named("low"), of(1), t0, t0)
		}, []string{"low"}, 0},
		{"a group that is being tried has no turn", func(q *Queue) {
			q.begin(q.entry(named("low")))
			q.Retry(named("low"), t0)
		}, nil, 0},
		{"a group that was dropped has no turn", func(q *Queue) {
			q.Retry(named("low"), t0)
			q.Drop(named("low"))
			q.Retry(named("low"), t0)
		}, nil, 0},
		{"a group whose first attempt touches reached is due after it", func(q *Queue) {
			q.begin(q.entry(named("new")))
			q.Retry(named("new"), t0)
			q.Wait(named("new"), of(3), t0, t0)
		}, []string{"new"}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			q := NewQueue()
			for name, key := range keys {
				q.Wait(named(name), key, t0, t0)
			}
			tc.do(q)
			got := turnsOf(t, q, keys, t0)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("turns (-want +got):\n%s", diff)
			}
			if _, _, wait := q.Next(t0); tc.wait > 0 && wait != tc.wait {
				t.Errorf("the next back-off ends in %s, want %s", wait, tc.wait)
			}
		})
	}
}

func TestTheImportantDoNotComeTwiceInARound(t *testing.T) {
	t.Parallel()
	q := NewQueue()
	for name, key := range map[string]gang.Key{"low": of(1), "high": of(9)} {
		q.Wait(named(name), key, t0, t0)
		q.Retry(named(name), t0)
	}
	var got []string
	for range 6 {
		id, ok, _ := q.Next(t0)
		if !ok {
			t.Fatal("no group is due although both groups are touched all the time")
		}
		got = append(got, id.Name)
		for _, name := range []string{"low", "high"} {
			q.Retry(named(name), t0)
		}
		q.Wait(id, map[string]gang.Key{"low": of(1), "high": of(9)}[id.Name], t0, t0)
	}
	if diff := cmp.Diff([]string{"high", "low", "high", "low", "high", "low"}, got); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
}

func TestTheLeastImportantHasItsTurnUnderAStreamOfNewGangs(t *testing.T) {
	t.Parallel()
	const k = 50
	q := NewQueue()
	least := named("least")
	enter := func(id gang.ID, key gang.Key) {
		q.begin(q.entry(id))
		q.Wait(id, key, t0, t0)
		q.Retry(id, t0)
	}
	enter(least, of(0))
	for i := range k - 1 {
		enter(named(fmt.Sprint(i)), of(1))
	}
	fresh, turns, longest, gap := k, 0, 0, 0
	for range 100 * k {
		id, ok, _ := q.Next(t0)
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
		q.Drop(id)
		fresh++
		enter(named(fmt.Sprint(fresh)), of(int32(fresh)))
	}
	if longest > 2*k-1 || turns < 100*k/(2*k-1) {
		t.Errorf("the least important of %d groups had %d turns, the longest wait was %d turns; want at most %d", k, turns,
			longest, 2*k-1)
	}
}

// naive is the Queue by definition: it looks at all groups each time.
type naive struct {
	round  int
	now    time.Time
	groups map[gang.ID]*naiveGroup
}

type naiveGroup struct {
	key             gang.Key
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
func (n *naive) best(round int) (gang.ID, bool) {
	var first gang.ID
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
func (n *naive) watch(t *rapid.T, tried gang.ID) {
	for id, g := range n.groups {
		if id == tried || !n.ready(g) {
			g.due, g.known, g.overtaken = false, 0, 0
			continue
		}
		if g.due && tried != (gang.ID{}) {
			g.overtaken++
		}
		g.due = true
		g.known = max(g.known, len(n.groups))
		if g.overtaken > 2*g.known-2 {
			t.Fatalf("%s was due and %d others were tried, with %d groups known", id, g.overtaken, g.known)
		}
	}
}

func TestQueueAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := NewQueue()
		n := &naive{round: 1, now: t0, groups: map[gang.ID]*naiveGroup{}}
		// New names keep coming, as new groups do.
		next := 0
		pick := func() gang.ID {
			if rapid.IntRange(0, 5).Draw(t, "new") == 0 {
				next++
			}
			return named(fmt.Sprintf("g%03d", rapid.IntRange(max(0, next-12), next).Draw(t, "group")))
		}
		eager := rapid.Bool().Draw(t, "touch everything all the time")
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			tried := gang.ID{}
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				n.now = n.now.Add(time.Duration(rapid.IntRange(0, 4).Draw(t, "seconds")) * time.Second)
			case 1:
				id := pick()
				q.begin(q.entry(id))
				if n.groups[id] == nil {
					n.groups[id] = &naiveGroup{}
				}
				*n.groups[id] = naiveGroup{key: n.groups[id].key, retryAt: n.groups[id].retryAt, tried: n.round, trying: true}
			case 2, 3, 4:
				id := pick()
				key := of(int32(rapid.IntRange(0, 4).Draw(t, "priority")))
				retryAt := n.now.Add(time.Duration(rapid.IntRange(-3, 3).Draw(t, "back-off")) * time.Second)
				q.Wait(id, key, retryAt, n.now)
				if n.groups[id] == nil {
					n.groups[id] = &naiveGroup{tried: n.round}
				}
				g := n.groups[id]
				g.key, g.retryAt, g.trying = key, retryAt, false
			case 5:
				id := pick()
				q.Retry(id, n.now)
				if g := n.groups[id]; g != nil {
					g.touched = true
				}
			case 6:
				id := pick()
				if rapid.Bool().Draw(t, "drop") {
					q.Drop(id)
					delete(n.groups, id)
				}
			default:
				id, ok, wait := q.Next(n.now)
				want, due := n.best(n.round)
				if !due {
					n.round++
					want, due = n.best(n.round)
				}
				if id != want || ok != due {
					t.Fatalf("Next gives %v (%t), want %v (%t)", id, ok, want, due)
				}
				if !ok {
					if rest := n.rest(); rest > 0 && (wait <= 0 || wait > rest) {
						t.Fatalf("the Queue is to be asked again in %s, but a back-off ends in %s", wait, rest)
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
					q.Wait(id, g.key, n.now, n.now)
				}
			}
			n.watch(t, tried)
			if eager {
				for id, g := range n.groups {
					q.Retry(id, n.now)
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
