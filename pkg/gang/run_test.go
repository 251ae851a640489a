package gang

import "testing"

func TestARunGoesFromPhaseToPhase(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name       string
		milestones []milestone
		want       phase
		minimum    bool
	}{
		{"members get nodes", []milestone{runs}, begun, false},
		{"the minimum is placed", []milestone{runs, isMet}, placed, true},
		{"all members end before that", []milestone{runs, isOver}, noRun, false},
		{"all members end after that", []milestone{runs, isMet, isOver}, noRun, false},
		{"members that are lost do not end the run", []milestone{runs, isMet, runs}, placed, true},
		{"an earlier scheduler has placed the minimum", []milestone{isRecalled}, remembered, true},
		{"and its members are seen", []milestone{isRecalled, runs}, placed, true},
		{"they are seen first", []milestone{runs, isRecalled}, placed, true},
		{"and have all gone", []milestone{isRecalled, isPlanned}, noRun, false},
		{"no member is seen yet", []milestone{isRecalled, isOver}, remembered, true},
		{"a plan for a run that goes on", []milestone{runs, isMet, isPlanned}, placed, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var r run
			for _, m := range tc.milestones {
				r.reach(m)
			}
			if r.phase != tc.want || r.hadMinimum() != tc.minimum {
				t.Errorf("phase %d, had the minimum %t; want %d and %t", r.phase, r.hadMinimum(), tc.want, tc.minimum)
			}
		})
	}
}
