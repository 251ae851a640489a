package gang

import (
	"testing"
	"time"
)

// labelled is a member that carries the minimum itself.
func labelled(i, minimum int) Member {
	return changed(i, func(m *Member) { m.Minimum = minimum })
}

func TestGangsByLabelsAlone(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		do   func(l *Ledger)
		// minimum is that of the group afterwards, by labels the one by labels; leads says whether member 0 may go.
		minimum, byLabels int
		leads             bool
	}{
		{"a larger minimum goes with the member that said so", func(l *Ledger) {
			l.Observe(g1, labelled(3, 5), t0)
			l.Forget(uid(3), t0)
		}, 3, 3, true},
		{"an owner wins over the labels", func(l *Ledger) { l.Define(g1, Owner, minimumOf(2), t0) }, 2, 2, true},
		{"members that drop the label wait for an object", func(l *Ledger) {
			for i := range 3 {
				l.Observe(g1, pending(i), t0)
			}
		}, 0, 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l := NewLedger(time.Minute, nil)
			for i := range 3 {
				l.Observe(g1, labelled(i, 3), t0)
			}
			tc.do(l)
			v, _ := l.View(g1)
			if v.Minimum.Total != tc.minimum || v.Undeclared != tc.byLabels {
				t.Errorf("minimum %d, by labels %d; want %d and %d", v.Minimum.Total, v.Undeclared, tc.minimum, tc.byLabels)
			}
			l.Agenda.Invite(g1, t0)
			if leads, why := l.Cycles.Admit(uid(0)); leads != tc.leads {
				t.Errorf("member 0 is admitted: %t (%s), want %t", leads, why, tc.leads)
			}
		})
	}
}

func TestGangByLabelsIsAsOldAsItsOldestMember(t *testing.T) {
	t.Parallel()
	l := NewLedger(time.Minute, nil)
	for i, age := range []time.Duration{time.Minute, time.Hour, time.Second} {
		m := labelled(i, 3)
		m.Created = t0.Add(-age)
		l.Observe(g1, m, t0)
	}
	l.Agenda.Invite(g1, t0)
	if ok, why := l.Cycles.Admit(uid(1)); !ok {
		t.Fatalf("the oldest member does not lead: %s", why)
	}
	if k, _ := l.Cycles.Key(uid(1)); !k.Time.Equal(t0.Add(-time.Hour)) {
		t.Errorf("the gang queues since %s, want since its oldest member was created", k.Time)
	}
}
