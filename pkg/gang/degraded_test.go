package gang

import "testing"

func TestDegraded(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		ledger *Ledger
		do     func(l *Ledger)
		want   bool
	}{
		{"the minimum was raised", runningGangOf(3, 3), func(l *Ledger) { l.Define(g1, Object, minimumOf(6), t0) }, false},
		{"nothing says what it needs any more", runningGangOf(3, 3), func(l *Ledger) { l.Undefine(g1, Object, t0) }, true},
		{"an earlier scheduler saw it start, and the minimum raised", gangOf(0, 3), func(l *Ledger) {
			l.Recall(g1, HadGrown, t0)
			l.Observe(g1, bound(0, node(0)), t0)
		}, false},
	} {
		tc.do(tc.ledger)
		v, _ := tc.ledger.View(g1)
		if v.Degraded != tc.want || tc.ledger.Tally()["degraded"] == 1 != tc.want {
			t.Errorf("%s: degraded: %t, %v; want %t", tc.name, v.Degraded, tc.ledger.Tally(), tc.want)
		}
		if w := placeOf(tc.ledger.groups[g1], tc.ledger.groups[g1].example()).Degraded; w != tc.want {
			t.Errorf("%s: its place in the queue is that of a degraded gang: %t, want %t", tc.name, w, tc.want)
		}
	}
}
