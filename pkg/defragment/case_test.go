package defragment

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// gpus are thousandths of GPUs, and gpuMinutes those of GPU minutes.
func gpus(n int64) int64                   { return 1000 * n }
func gpuMinutes(gpus, minutes int64) int64 { return 1000 * gpus * minutes }

func TestMovesPayIfTheGangGainsMoreThanTheyLose(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		of     Case
		notice time.Duration
		want   Balance
		pays   bool
	}{
		{name: "a gang of 16 GPUs starts an hour sooner for a pod that has just saved",
			of:   Case{t0.Add(time.Hour), gpus(16), []Move{{Lost: gpuMinutes(1, 2), MilliGPUs: gpus(1)}}},
			want: Balance{59 * time.Minute, gpuMinutes(16, 59), gpuMinutes(1, 3)}, pays: true},
		{name: "the pod has not saved its work for two days",
			of:   Case{t0.Add(time.Hour), gpus(16), []Move{{Lost: gpuMinutes(1, 2880), MilliGPUs: gpus(1)}}},
			want: Balance{59 * time.Minute, gpuMinutes(16, 59), gpuMinutes(1, 2881)}},
		{name: "as much is lost as is gained",
			of:   Case{t0.Add(3 * time.Minute), gpus(8), []Move{{Lost: gpuMinutes(8, 1), MilliGPUs: gpus(8)}}},
			want: Balance{2 * time.Minute, gpuMinutes(8, 2), gpuMinutes(8, 2)}},
		{name: "each of several moves takes its time",
			of:   Case{t0.Add(10 * time.Minute), gpus(8), []Move{{MilliGPUs: gpus(1)}, {MilliGPUs: gpus(2)}}},
			want: Balance{8 * time.Minute, gpuMinutes(8, 8), gpuMinutes(3, 1)}, pays: true},
		{name: "the notice ends after the told start",
			of:     Case{t0.Add(10 * time.Minute), gpus(8), []Move{{MilliGPUs: gpus(1)}}},
			notice: 10 * time.Minute, want: Balance{0, 0, gpuMinutes(1, 1)}},
		{name: "the told start is over", of: Case{t0.Add(-time.Hour), gpus(8), []Move{{MilliGPUs: gpus(1)}}},
			want: Balance{0, 0, gpuMinutes(1, 1)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := tc.of.Weigh(t0, tc.notice)
			if diff := cmp.Diff(tc.want, got); diff != "" || got.Pays() != tc.pays {
				t.Errorf("pays: %t, want %t; balance (-want +got):\n%s", got.Pays(), tc.pays, diff)
			}
		})
	}
}

func TestABudgetIsForMovesAndForWork(t *testing.T) {
	t.Parallel()
	most := Limits{Moves: 3, LostGPUHours: 2}
	var b Budget
	for _, step := range []struct {
		after time.Duration
		moves int
		lost  int64
		want  bool
	}{
		{0, 4, 0, false},                           // too many at once
		{0, 1, gpuMinutes(8, 16), false},           // more than two GPU hours
		{0, 2, gpuMinutes(1, 100), true},           //
		{time.Minute, 1, gpuMinutes(1, 21), false}, // too much in an hour
		{time.Minute, 1, gpuMinutes(1, 20), true},
		{2 * time.Minute, 1, 0, false}, // the fourth
		{60*time.Minute + time.Second, 2, gpuMinutes(1, 100), true},
	} {
		if got := b.Take(step.moves, step.lost, most, t0.Add(step.after)); got != step.want {
			t.Errorf("%d moves that lose %d after %s: got %t, want %t", step.moves, step.lost, step.after, got, step.want)
		}
	}
}

// TestNoHourCostsMoreThanTheLimits looks at every hour that begins with moves, of any sequence of attempts.
func TestNoHourCostsMoreThanTheLimits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		most := Limits{Moves: rapid.IntRange(0, 20).Draw(t, "most moves"), LostGPUHours: rapid.IntRange(0, 4).Draw(t,
			"hours")}
		var b Budget
		now := t0
		type taken struct {
			at    time.Time
			moves int
			lost  int64
		}
		var all []taken
		for range rapid.IntRange(1, 60).Draw(t, "attempts") {
			now = now.Add(time.Duration(rapid.IntRange(0, 1800).Draw(t, "seconds")) * time.Second)
			next := taken{now, rapid.IntRange(1, AtOnce).Draw(t, "moves"), rapid.Int64Range(0, 3*milliMinutes).Draw(t, "lost")}
			if b.Take(next.moves, next.lost, most, now) {
				all = append(all, next)
			}
		}
		for i := range all {
			moves, lost := 0, int64(0)
			for _, other := range all[i:] {
				if other.at.Sub(all[i].at) < time.Hour {
					moves, lost = moves+other.moves, lost+other.lost
				}
			}
			if moves > most.Moves || lost > int64(most.LostGPUHours)*milliMinutes {
				t.Fatalf("%d moves lose %d in the hour from %s, allowed are %+v", moves, lost, all[i].at, most)
			}
		}
	})
}
