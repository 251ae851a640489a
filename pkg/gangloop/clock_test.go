package gangloop

import (
	"testing"
	"time"
)

func TestAClockThatIsSetBackIsNoticed(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var clock wallClock
	for _, step := range []struct {
		what         string
		passed, wall time.Duration
		want         time.Duration
	}{
		{what: "the first reading", passed: time.Hour},
		{what: "a second later", passed: time.Hour + time.Second, wall: time.Second},
		{what: "an hour back", passed: time.Hour + 2*time.Second, wall: 2*time.Second - time.Hour, want: time.Hour},
		{what: "once only", passed: time.Hour + 3*time.Second, wall: 3*time.Second - time.Hour},
		{what: "forward again", passed: time.Hour + 4*time.Second, wall: 4 * time.Second},
		{what: "a machine that slept, whose monotonic clock stood still", passed: time.Hour + 4*time.Second,
			wall: 8 * time.Hour},
		{what: "the same moment", passed: time.Hour + 4*time.Second, wall: 8 * time.Hour},
		{what: "a clock that stands still, as if it were set back all the time", passed: time.Hour + 14*time.Second,
			wall: 8 * time.Hour, want: 10 * time.Second},
	} {
		if got := clock.read(step.passed, noon.Add(step.wall)); got != step.want {
			t.Errorf("%s: set back by %s, want %s", step.what, got, step.want)
		}
	}
	var machine wallClock
	for range 1000 {
		if got := machine.regression(time.Now()); got >= regressionFrom {
			t.Fatalf("a clock that nobody sets was set back by %s", got)
		}
	}
}
