package gang

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestStart(t *testing.T) {
	t.Parallel()
	l := gangOf(2, 3)
	l.Observe(g1, pending(2), t0.Add(time.Second))
	l.Agenda.Invite(g1, t0)
	l.Cycles.Propose(uid(0), proposalFor(0, 1, 2), t0)
	reserve(t, l, 0, 1, 2)
	for i := range 3 {
		e := l.Observe(g1, bound(i, node(i)), t0.Add(5*time.Second))
		if e.Started != (i == 2) {
			t.Fatalf("started %t with %d of 3", e.Started, i+1)
		}
		if e.Started && e.Waited != 4*time.Second {
			t.Errorf("the gang waited %s since it had enough members, want 4s", e.Waited)
		}
	}
	if v, _ := l.View(g1); !v.Started || v.Degraded {
		t.Errorf("started %t, degraded %t", v.Started, v.Degraded)
	}
}

// A gang that is found running, after a restart, has not started now.
func TestGangThatIsFoundRunning(t *testing.T) {
	t.Parallel()
	l := gangOf(2, 2)
	for i := range 2 {
		if e := l.Observe(g1, bound(i, node(i)), t0); e.Started {
			t.Fatal("the gang is said to start")
		}
	}
	if v, _ := l.View(g1); !v.Started {
		t.Error("the gang has its minimum and has not started")
	}
}

func TestWhatIsKnownOfAStart(t *testing.T) {
	t.Parallel()
	// Each case leaves member 9 pending, and perhaps others.
	for _, tc := range []struct {
		name    string
		do      func(l *Ledger)
		started bool
		kind    TurnKind
		why     string
	}{
		{"a replacement is free although one of four has failed for good", func(l *Ledger) {
			for i := range 4 {
				l.Observe(g1, bound(i, node(i)), t0)
			}
			l.Observe(g1, inState(0, Failed), t0)
			l.Observe(g1, inState(1, Failed), t0)
		}, true, Free, ""},
		{"a replacement is free after the controller was scaled down", func(l *Ledger) {
			for i := range 4 {
				l.Observe(g1, bound(i, node(i)), t0)
			}
			l.Forget(uid(0), t0)
			l.Forget(uid(1), t0)
		}, true, Free, ""},
		{"a scheduler that starts finds what is left and is told", func(l *Ledger) {
			l.Observe(g1, bound(0, node(0)), t0)
			l.Recall(g1, HadStarted, t0)
		}, true, Free, ""},
		{"a scheduler that starts is told before it sees any member", func(l *Ledger) {
			l.Recall(g1, HadStarted, t0)
			l.Observe(g1, bound(0, node(0)), t0)
		}, true, Free, ""},
		{"a scheduler that starts is told before it sees the group", func(l *Ledger) {
			l.Forget(uid(9), t0)
			l.Undefine(g1, Object, t0)
			if _, known := l.View(g1); known {
				t.Error("the group is known before anything is")
			}
			l.Recall(g1, HadStarted, t0)
			if _, known := l.View(g1); known {
				t.Error("a group of which only its start is remembered is shown")
			}
			l.Observe(g1, bound(0, node(0)), t0)
			l.Define(g1, Object, minimumOf(4), t0)
			l.Observe(g1, pending(9), t0)
		}, true, Free, ""},
		{"a scheduler that starts in the middle of a start completes it", func(l *Ledger) {
			l.Recall(g1, NotStarted, t0)
			for i := range 3 {
				l.Observe(g1, bound(i, node(i)), t0)
			}
		}, false, Lead, ""},
		{"only the first word counts", func(l *Ledger) {
			l.Recall(g1, NotStarted, t0)
			l.Recall(g1, HadStarted, t0)
			l.Observe(g1, bound(0, node(0)), t0)
		}, false, Hold, "gang ns/one has 2 of the 4 members that it needs"},
		{"nothing is left of a gang that had started", func(l *Ledger) {
			l.Recall(g1, HadStarted, t0)
		}, false, Hold, "gang ns/one has 1 of the 4 members that it needs"},
		{"a PodGroup is used again when the last member has gone", func(l *Ledger) {
			for i := range 4 {
				l.Observe(g1, bound(i, node(i)), t0)
			}
			for i := range 4 {
				l.Forget(uid(i), t0)
			}
		}, false, Hold, "gang ns/one has 1 of the 4 members that it needs"},
		{"members that are being deleted do not keep a start alive", func(l *Ledger) {
			for i := range 4 {
				l.Observe(g1, bound(i, node(i)), t0)
			}
			for i := range 4 {
				l.Observe(g1, inState(i, Terminating), t0)
			}
		}, false, Hold, "gang ns/one has 1 of the 4 members that it needs"},
		{"nor do members that have failed and stay", func(l *Ledger) {
			for i := range 4 {
				l.Observe(g1, bound(i, node(i)), t0)
			}
			for i := range 4 {
				l.Observe(g1, inState(i, Failed), t0)
			}
		}, false, Hold, "gang ns/one has 1 of the 4 members that it needs"},
		{"nor do fewer than the minimum that have succeeded, which count for the next start", func(l *Ledger) {
			for i := range 4 {
				l.Observe(g1, bound(i, node(i)), t0)
			}
			for i := range 3 {
				l.Observe(g1, inState(i, Succeeded), t0)
			}
			l.Forget(uid(3), t0)
		}, false, Lead, ""},
		{"as many as the minimum that have succeeded do", func(l *Ledger) {
			for i := range 4 {
				l.Observe(g1, bound(i, node(i)), t0)
				l.Observe(g1, inState(i, Succeeded), t0)
			}
		}, true, Free, ""},
		{"a raised minimum does not undo a start", func(l *Ledger) {
			for i := range 4 {
				l.Observe(g1, bound(i, node(i)), t0)
			}
			l.Define(g1, Object, minimumOf(8), t0)
		}, true, Free, ""},
		{"a lowered minimum is a start", func(l *Ledger) {
			l.Observe(g1, bound(0, node(0)), t0)
			l.Define(g1, Object, minimumOf(1), t0)
		}, true, Free, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l := gangOf(0, 4)
			l.Observe(g1, pending(9), t0)
			tc.do(l)
			l.Agenda.Invite(g1, t0)
			turn := l.Cycles.Turn(uid(9))
			v, _ := l.View(g1)
			if v.Started != tc.started || turn.Kind != tc.kind || words(turn.Why) != tc.why {
				t.Errorf("started %t, turn %v %q; want %t, %v %q", v.Started, turn.Kind, turn.Why, tc.started, tc.kind, tc.why)
			}
		})
	}
}

// Members that were let into the queue as ordinary pods come back to their group when the start that made them so is
// over.
func TestNewStartOfMembersThatWereOrdinary(t *testing.T) {
	t.Parallel()
	l := runningGangOf(2, 2)
	for i := 2; i < 4; i++ {
		l.Observe(g1, pending(i), t0)
		l.Cycles.Admit(uid(i))
		if turn := l.Cycles.Turn(uid(i)); turn.Kind != Free {
			t.Fatalf("turn %+v", turn)
		}
	}
	// They fit nowhere, and what had started goes.
	l.Forget(uid(0), t0)
	l.Forget(uid(1), t0)
	if _, waits := l.Agenda.Waiting(g1); !waits {
		t.Fatal("the gang does not wait to be planned")
	}
	if diff := cmp.Diff([]UID{uid(2)}, uids(l.Agenda.Invite(g1, t0).Activate)); diff != "" {
		t.Fatalf("the leader is activated (-want +got):\n%s", diff)
	}
	if l.Cycles.Reserve(uid(3), "x", t0) {
		t.Error("a member that began its cycle as an ordinary pod reserves without a plan")
	}
}

// A start is said again when a PodGroup is used again, and the wait counts from the new members.
func TestSecondStart(t *testing.T) {
	t.Parallel()
	l := runningGangOf(2, 2)
	for i := range 2 {
		l.Observe(g1, inState(i, Succeeded), t0)
		l.Forget(uid(i), t0)
	}
	later := t0.Add(time.Hour)
	l.Observe(g1, pending(2), later)
	l.Observe(g1, pending(3), later)
	l.Agenda.Invite(g1, later)
	l.Cycles.Propose(uid(2), proposalFor(2, 3), later)
	reserve(t, l, 2, 3)
	l.Observe(g1, bound(2, node(2)), later.Add(time.Second))
	if e := l.Observe(g1, bound(3, node(3)), later.Add(time.Second)); !e.Started || e.Waited != time.Second {
		t.Errorf("started %t after %s, want after 1s", e.Started, e.Waited)
	}
}

func TestLateObservationsMeanNothing(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		now, late State
	}{
		{"bound after failed", Failed, Bound},
		{"bound after succeeded", Succeeded, Bound},
		{"bound after terminating", Terminating, Bound},
		{"pending after bound", Bound, Pending},
		{"gated after pending", Pending, Gated},
		{"terminating after failed", Failed, Terminating},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l := runningGangOf(1, 1)
			l.Observe(g1, changed(5, func(m *Member) { m.State, m.Node = tc.now, "n" }), t0)
			before, _ := l.View(g1)
			if e := l.Observe(g1, changed(5, func(m *Member) { m.State, m.Node, m.Running = tc.late, "n", true }),
				t0); !e.Empty() {
				t.Errorf("effects %+v", e)
			}
			after, _ := l.View(g1)
			if diff := cmp.Diff(before, after, exactly); diff != "" {
				t.Errorf("view (-before +after):\n%s", diff)
			}
		})
	}
}

func TestLosses(t *testing.T) {
	t.Parallel()
	one := []Loss{{Group: g1, Member: Ref{UID: uid(0), Namespace: "ns", Name: "p00"}, Node: node(0)}}
	starting := []Loss{{Group: g1, Member: one[0].Member, Node: node(0), Starting: true}}
	for _, tc := range []struct {
		name   string
		ledger *Ledger
		do     func(l *Ledger) Effects
		want   []Loss
	}{
		{"a member fails", runningGangOf(3, 3), func(l *Ledger) Effects { return l.Observe(g1, inState(0, Failed), t0) },
			one},
		{"a member is being deleted", runningGangOf(3, 3),
			func(l *Ledger) Effects { return l.Observe(g1, inState(0, Terminating), t0) }, one},
		{"a member is gone at once", runningGangOf(3, 3), func(l *Ledger) Effects { return l.Forget(uid(0), t0) }, one},
		{"a loss is told once", runningGangOf(3, 3), func(l *Ledger) Effects {
			l.Observe(g1, inState(0, Terminating), t0)
			e := l.Observe(g1, inState(0, Failed), t0)
			e.Lost = append(e.Lost, l.Forget(uid(0), t0).Lost...)
			return e
		}, nil},
		{"a member succeeds", runningGangOf(3, 3),
			func(l *Ledger) Effects { return l.Observe(g1, inState(0, Succeeded), t0) }, nil},
		{"a member that has succeeded goes", runningGangOf(3, 3), func(l *Ledger) Effects {
			l.Observe(g1, inState(0, Succeeded), t0)
			return l.Forget(uid(0), t0)
		}, nil},
		{"the others are enough", runningGangOf(3, 2), func(l *Ledger) Effects { return l.Forget(uid(0), t0) }, nil},
		{"nothing says what the gang needs any more", runningGangOf(3, 3), func(l *Ledger) Effects {
			l.Undefine(g1, Object, t0)
			return l.Forget(uid(0), t0)
		}, nil},
		{"the gang has never started", gangOf(3, 3), func(l *Ledger) Effects {
			l.Observe(g1, bound(0, node(0)), t0)
			return l.Forget(uid(0), t0)
		}, nil},
		{"a member cannot be bound while others are being bound", releasedGangOf(t, 3, 3), func(l *Ledger) Effects {
			return l.Cycles.Unreserve(uid(0), testBackoff, t0)
		}, starting},
		{"a member cannot be bound and others are", releasedGangOf(t, 3, 3), func(l *Ledger) Effects {
			l.Observe(g1, bound(1, node(1)), t0)
			l.Observe(g1, bound(2, node(2)), t0)
			return l.Cycles.Unreserve(uid(0), testBackoff, t0)
		}, starting},
		{"no member can be bound", releasedGangOf(t, 3, 3), func(l *Ledger) Effects {
			l.Cycles.Unreserve(uid(1), testBackoff, t0)
			l.Cycles.Unreserve(uid(2), testBackoff, t0)
			return l.Cycles.Unreserve(uid(0), testBackoff, t0)
		}, nil},
		{"a member cannot be bound that is not needed any more", releasedGangOf(t, 3, 2), func(l *Ledger) Effects {
			l.Observe(g1, bound(1, node(1)), t0)
			l.Observe(g1, bound(2, node(2)), t0)
			return l.Cycles.Unreserve(uid(0), testBackoff, t0)
		}, nil},
		{"nothing is left of the gang", runningGangOf(1, 1), func(l *Ledger) Effects { return l.Forget(uid(0), t0) }, nil},
		{"a member moves to another gang with its node", runningGangOf(3, 3),
			func(l *Ledger) Effects { return l.Observe(g2, bound(0, node(0)), t0) }, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, tc.do(tc.ledger).Lost); diff != "" {
				t.Errorf("lost (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMemberChangesItsGang(t *testing.T) {
	t.Parallel()
	t.Run("a held one that is no member any more is an ordinary pod at once", func(t *testing.T) {
		t.Parallel()
		l := gangOf(3, 4)
		l.Cycles.Admit(uid(0))
		if diff := cmp.Diff([]UID{uid(0)}, uids(l.Forget(uid(0), t0).Activate)); diff != "" {
			t.Errorf("activated (-want +got):\n%s", diff)
		}
		if v, _ := l.View(g1); v.Existing() != 2 {
			t.Errorf("view %+v; want the group without the member", v)
		}
	})
	t.Run("the one that was invited to lead passes that on", func(t *testing.T) {
		t.Parallel()
		l := gangOf(3, 2)
		l.Agenda.Invite(g1, t0)
		l.Cycles.Admit(uid(0))
		if diff := cmp.Diff([]UID{uid(1)}, uids(l.Forget(uid(0), t0).Activate)); diff != "" {
			t.Errorf("activated (-want +got):\n%s", diff)
		}
	})
	t.Run("one that gets the label completes the gang", func(t *testing.T) {
		t.Parallel()
		l := gangOf(1, 2)
		l.Observe(g2, pending(5), t0)
		l.Observe(g1, pending(5), t0)
		if _, known := l.View(g2); known {
			t.Error("a group that has lost its only member is still known")
		}
		if _, waits := l.Agenda.Waiting(g1); !waits {
			t.Error("the gang is not complete")
		}
	})
	t.Run("one that was bound without it counts", func(t *testing.T) {
		t.Parallel()
		l := gangOf(1, 2)
		l.Observe(g1, bound(5, "x"), t0)
		w, waits := l.Agenda.Waiting(g1)
		if !waits || w.Need.Total != 1 || w.Held != 1 {
			t.Errorf("Waiting = %+v, %t", w, waits)
		}
	})
}

// The pods of a controller keep their names; what counts is the identity.
func TestPodThatIsCreatedAgainUnderItsName(t *testing.T) {
	t.Parallel()
	l := plannedGangOf(t, 2, 2)
	reserve(t, l, 0)
	l.Observe(g1, changed(0, func(m *Member) { m.UID = "again" }), t0)
	who, _ := rejected(l.Forget(uid(0), t0))
	if len(who) != 1 || who[0] != uid(0) {
		t.Errorf("rejected %v", who)
	}
	if turn := l.Cycles.Turn("again"); turn.Kind == Follow {
		t.Error("the new pod takes the assignment of the old one")
	}
	if v, _ := l.View(g1); v.Existing() != 2 {
		t.Errorf("%d members exist, want 2", v.Existing())
	}
}

func TestPodGroupIsDeletedAndCreatedAgain(t *testing.T) {
	t.Parallel()
	l := releasedGangOf(t, 3, 3)
	l.Observe(g1, bound(0, node(0)), t0)
	if e := l.Undefine(g1, Object, t0); len(e.Reject) != 0 {
		t.Errorf("members that were let go are asked to come back: %v", e.Reject)
	}
	l.Observe(g1, bound(1, node(1)), t0)
	if ok, why := l.Cycles.Admit(uid(2)); ok || words(why) != "waiting for PodGroup ns/one, which does not exist" {
		t.Errorf("Admit = %t, %q", ok, why)
	}
	spec := minimumOf(3)
	spec.UID = "another"
	l.Define(g1, Object, spec, t0)
	if e := l.Observe(g1, bound(2, node(2)), t0); !e.Started {
		t.Error("the last member of a plan that was carried out is bound and the gang has not started")
	}
}
