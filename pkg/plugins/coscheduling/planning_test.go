package coscheduling

import (
	"strconv"
	"testing"
	"time"

	"berth.dev/berth/pkg/gang"
)

func TestPlansOfOneNamespaceHaveRoomForTwo(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	plan := func() *planning { return &planning{stop: func() {}, work: work{short: true}} }
	of := func(i int) gang.ID { return gang.ID{Namespace: "many", Name: strconv.Itoa(i)} }
	var s plans
	for i := range parkedAtMost {
		p := plan()
		if !s.room(of(i), now) || !s.park(of(i), p, now) {
			t.Fatalf("no room for plan %d", i)
		}
		if p.work.short {
			t.Error("a plan that is kept goes on in short slices")
		}
	}
	if s.room(of(9), now) || s.park(of(9), plan(), now) {
		t.Error("there is room for one more")
	}
	if !s.room(of(0), now) || !s.room(gang.ID{Namespace: "other", Name: "9"}, now) {
		t.Error("want room for a plan that is kept, and for another namespace")
	}
	if later := now.Add(parkedFor + 1); !s.room(of(9), later) || len(s.parked) > 0 {
		t.Error("plans that nobody goes on with take room for ever")
	}
}

// The first slice of a plan that may be in vain is short; nothing here depends on how fast the machine is.
func TestAPlanThatMayBeInVainPausesEarly(t *testing.T) {
	t.Parallel()
	for name, short := range map[string]bool{"with room": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			paused := false
			w := work{short: short, yield: func() bool { paused = true; return false }, began: time.Now().Add(time.Hour)}
			w.spend(shortVisits)
			if err := w.pause(&dryRun{}); (err != nil) != short || paused != short {
				t.Errorf("pause: %v, paused %t; want it to pause: %t", err, paused, short)
			}
		})
	}
}
