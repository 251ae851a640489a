package work

import (
	"testing"
	"time"
)

const day = 24 * time.Hour

var testLimits = Limits{Unsaved: day, Restart: 30 * time.Minute, Protected: 10 * time.Minute}

func TestWhatAnEvictionLoses(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) time.Time { return t0.Add(d) }
	for _, tc := range []struct {
		name  string
		work  Work
		after time.Duration
		// minutes of one GPU.
		minutes int64
	}{
		{"the newest counts", Work{Saved: []time.Time{at(2 * time.Hour), at(170 * time.Minute), at(time.Hour)}},
			3 * time.Hour, 10},
		{"no more than is written in one interval", Work{Every: 30 * time.Minute}, 3 * time.Hour, 30},
		{"less if it has run for less", Work{Every: 30 * time.Minute}, 10 * time.Minute, 10},
		{"a checkpoint that is overdue does not undo the interval",
			Work{Every: 30 * time.Minute, Saved: []time.Time{at(time.Hour)}}, 3 * time.Hour, 30},
		{"a checkpoint of the future is none", Work{Saved: []time.Time{at(5 * time.Hour)}}, 3 * time.Hour, 180},
		{"the clock of a node may be ahead a little", Work{Saved: []time.Time{at(3*time.Hour + 30*time.Second)}},
			3 * time.Hour, 0},
		{"a checkpoint from before the pod is none of its work", Work{Saved: []time.Time{at(-time.Hour)}}, 3 * time.Hour,
			180},
		{"a day of work is the most that counts", Work{}, 30 * day, 24 * 60},
		{"the time to come back is bounded", Work{Every: time.Minute, Restart: 1000 * time.Hour}, 3 * time.Hour, 31},
		{"a negative interval says nothing", Work{Every: -time.Hour}, 3 * time.Hour, 180},
		{"a pod that starts in the future has done nothing", Work{}, -time.Hour, 0},
	} {
		tc.work.Started, tc.work.MilliGPUs = t0, 1000
		if got := tc.work.Lost(at(tc.after), testLimits); got != 1000*tc.minutes {
			t.Errorf("%s: %d thousandths of GPU minutes are lost, want %d minutes", tc.name, got, tc.minutes)
		}
	}
}

func TestWhatIsOccupiedCounts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		work Work
		want int64
	}{
		{"each GPU", Work{MilliGPUs: 8000, MilliCPUs: 64000}, 8 * 60 * 1000},
		{"CPUs where there are no GPUs, a hundred as one GPU", Work{MilliCPUs: 50000}, 30 * 1000},
		{"nothing", Work{}, 0},
	} {
		tc.work.Started = t0
		if got := tc.work.Lost(t0.Add(time.Hour), testLimits); got != tc.want {
			t.Errorf("%s: lost %d, want %d", tc.name, got, tc.want)
		}
	}
	started := Work{Started: t0, MilliGPUs: 1000}
	if got := started.Lost(t0.Add(time.Hour), Limits{Restart: time.Hour}); got != 0 {
		t.Errorf("lost %d although work does not count", got)
	}
	waiting := Work{MilliGPUs: 1000, Restart: time.Minute}
	if got := waiting.Lost(t0, testLimits); got != 0 {
		t.Errorf("a pod that has not started loses %d", got)
	}
}

func TestHowLongAPodIsProtected(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		asks  time.Duration
		after time.Duration
		want  bool
	}{
		{"for as long as it asks", 5 * time.Minute, 5*time.Minute - 1, true},
		{"and no longer", 5 * time.Minute, 5 * time.Minute, false},
		{"no longer than the limit", time.Hour, 10 * time.Minute, false},
		{"not at all unless it asks", 0, 0, false},
	} {
		w := Work{Started: t0, Protected: tc.asks}
		if got := w.IsProtected(t0.Add(tc.after), testLimits); got != tc.want {
			t.Errorf("%s: %t, want %t", tc.name, got, tc.want)
		}
	}
}
