package waiting

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth.dev/berth/pkg/gang"
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func named(name string) gang.ID { return gang.ID{Namespace: "ns", Name: name} }

// of returns the key of a group of that priority.
func of(priority int32) gang.Key { return gang.Key{Priority: priority, Time: t0} }

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
