package coscheduling

import (
	"testing"
	"time"

	"berth.dev/berth/pkg/eviction"
)

// Between a search and the next cycle of its gang lie the turns of all others in line, and the gang's own plan.
func TestTheResultOfASearchLastsUntilTheGangHasItsTurn(t *testing.T) {
	t.Parallel()
	r := &request{name: "gang default/g"}
	found := &proposal{Plan: eviction.Plan{Outcome: eviction.RoomAfterEviction}, request: r}
	now := time.Now()
	for _, age := range []time.Duration{0, 20 * time.Second} {
		e := &evictor{work: map[string]*attempt{r.name: {found: found, at: now.Add(-age), request: r}}}
		if got, reason := e.decide(t.Context(), r, now); got != found {
			t.Errorf("after %s the gang is told %q, want it to evict what was found", age, reason)
		}
	}
}
