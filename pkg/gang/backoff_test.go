package gang

import (
	"fmt"
	"testing"
	"time"

	"berth.dev/berth/pkg/gang/obstacle"
)

// TestEditsDoNotEndThePause changes, for a minute and fifty times a second, what a user may change of a group that
// does not fit, and counts how often it may be tried meanwhile.
func TestEditsDoNotEndThePause(t *testing.T) {
	t.Parallel()
	member := func(class string) Member {
		return Member{Ref: Ref{UID: uid(1), Namespace: "ns", Name: "p01"}, Created: t0, State: Pending, Class: class,
			Ours: true}
	}
	edits := map[string]func(l *Ledger, i int, now time.Time){
		"the specification": func(l *Ledger, i int, now time.Time) {
			l.Define(g1, Object, Spec{Minimum: Minimum{Total: 2}, Created: t0, UID: "g1", Generation: int64(i)}, now)
		},
		"an annotation of the object": func(l *Ledger, _ int, now time.Time) {
			l.Reconsider(g1, now)
		},
		"the object, which is deleted and created again": func(l *Ledger, i int, now time.Time) {
			l.Undefine(g1, Object, now)
			l.Define(g1, Object, Spec{Minimum: Minimum{Total: 2}, Created: now, UID: UID(fmt.Sprint(i))}, now)
		},
		"a member, which is deleted and created again": func(l *Ledger, i int, now time.Time) {
			l.Forget(UID(fmt.Sprint("again ", i-1)), now)
			l.Forget(uid(1), now)
			m := member("a")
			m.UID, m.Created = UID(fmt.Sprint("again ", i)), now
			l.Observe(g1, m, now)
		},
		"the label with the minimum": func(l *Ledger, i int, now time.Time) {
			m := member("a")
			m.Minimum = 1 + i%2
			l.Undefine(g1, Object, now)
			l.Observe(g1, m, now)
		},
	}
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := gangOf(2, 2)
			tries := 0
			for i := range 60 * 50 {
				now := t0.Add(time.Duration(i) * 20 * time.Millisecond)
				edit(l, i, now)
				w, waits := l.Agenda.Waiting(g1)
				if !waits || (!w.Fresh && !w.Touched) || now.Before(w.RetryAt) {
					continue
				}
				tries++
				l.Agenda.Invite(g1, now)
				l.Cycles.Block(g1, obstacle.Text("too big"), nil, testBackoff, now)
			}
			// Pauses of 0, 1, 2, 4 and then 8 seconds.
			if tries < 8 || tries > 11 {
				t.Errorf("the group was tried %d times in a minute, want 8 to 11", tries)
			}
		})
	}
}

// TestLargePlansLetOthersGoFirst carries out a plan of more members than are let into the queue at a time.
func TestLargePlansLetOthersGoFirst(t *testing.T) {
	t.Parallel()
	for name, ordered := range map[string]bool{"in any order": false, "one after the other": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testLargePlan(t, ordered)
		})
	}
}

func testLargePlan(t *testing.T, ordered bool) {
	t.Helper()
	const size = 3*window + 1
	l := gangOf(size, size)
	l.Agenda.Invite(g1, t0)
	l.Cycles.Admit(uid(0))
	l.Cycles.Of(uid(0))
	proposal := Proposal{Ordered: ordered}
	for i := range size {
		proposal.Assignments = append(proposal.Assignments, Assignment{UID: uid(i), Node: "n"})
	}
	e, serves, proceed := l.Cycles.Propose(uid(0), proposal, t0)
	if !serves || !proceed {
		t.Fatalf("serves %t, proceed %t", serves, proceed)
	}
	now, allowed := t0, 0
	queue := append([]Ref{{UID: uid(0)}}, e.Activate...)
	for rounds := 1; allowed == 0; rounds++ {
		served := 0
		// Of an ordered plan each member that has reserved lets the next in.
		for ; len(queue) > 0; served++ {
			r := queue[0]
			queue = queue[1:]
			l.Cycles.Admit(r.UID)
			l.Cycles.Of(r.UID)
			if !l.Cycles.Reserve(r.UID, "n", now) {
				t.Fatalf("member %s cannot reserve", r.UID)
			}
			e, wait, _, ok := l.Cycles.Permit(r.UID, now)
			if !ok {
				t.Fatalf("member %s lost its assignment", r.UID)
			}
			if wait == 0 {
				allowed = 1 + bindAll(t, l, e.Allow, now)
			}
			if len(e.Activate) > 1 || (len(e.Activate) > 0 && !ordered) {
				t.Fatalf("%d members are let in before others had time", len(e.Activate))
			}
			queue = append(queue, e.Activate...)
		}
		if served > window {
			t.Fatalf("%d members are served at a time, want at most %d", served, window)
		}
		if allowed > 0 {
			if rounds != 4 || allowed != size {
				t.Errorf("%d members are let go after %d rounds, want %d after 4", allowed, rounds, size)
			}
			return
		}
		if !l.Agenda.Flowing() {
			t.Fatal("no member waits to be let in")
		}
		if early := l.Agenda.Expire(testBackoff, now); !early.Empty() {
			t.Fatalf("%+v without a pause", early)
		}
		now = now.Add(QueuePause)
		queue = l.Agenda.Expire(testBackoff, now).Activate
		if rounds > 4 {
			t.Fatal("the plan does not come to an end")
		}
	}
}

// bindAll binds members as they are let go, and returns how many were.
func bindAll(t *testing.T, l *Ledger, allow []Ref, now time.Time) int {
	t.Helper()
	bound := 0
	for len(allow) > 0 {
		if len(allow) > bindWindow {
			t.Fatalf("%d members are let go at a time, want at most %d", len(allow), bindWindow)
		}
		var more []Ref
		for _, r := range allow {
			bound++
			e := l.Observe(g1, Member{Ref: r, Created: t0, State: Bound, Node: "n", Ours: true}, now)
			more = append(more, e.Allow...)
		}
		allow = more
	}
	return bound
}

// TestMembersThatDoNotComeDoNotStopThePlan keeps a whole window of members out of the queue.
func TestMembersThatDoNotComeDoNotStopThePlan(t *testing.T) {
	t.Parallel()
	const size = 2 * window
	l := gangOf(size, size)
	l.Agenda.Invite(g1, t0)
	proposal := Proposal{}
	for i := range size {
		proposal.Assignments = append(proposal.Assignments, Assignment{UID: uid(i), Node: "n"})
	}
	e, _, _ := l.Cycles.Propose(uid(0), proposal, t0)
	let := map[UID]bool{uid(0): true}
	for now := t0; now.Before(t0.Add(3 * time.Second)); now = now.Add(QueuePause) {
		for _, r := range append(e.Activate, l.Agenda.Expire(testBackoff, now).Activate...) {
			let[r.UID] = true
		}
	}
	if len(let) != size {
		t.Errorf("%d of %d members were let into the queue", len(let), size)
	}
}
