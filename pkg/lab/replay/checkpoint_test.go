package replay

import (
	"math"
	"testing"
	"time"

	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/lab/trace"
)

// A job that is preempted goes on from its last checkpoint, and what it did after that is lost.
func TestPreemptedJobsGoOnFromTheirLastCheckpoint(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		every time.Duration
		gang  bool
		// ends is when the low job has ended, and lost how many GPU hours it has lost.
		ends time.Duration
		lost float64
	}{
		"without checkpoints it starts over": {ends: 100*time.Minute + 30*time.Minute + 4*time.Hour,
			lost: 4 * 100.0 / 60},
		"with one an hour it goes on from an hour": {every: time.Hour, ends: 100*time.Minute + 30*time.Minute + 3*time.Hour,
			lost: 4 * 40.0 / 60},
		"a gang goes on together": {every: time.Hour, gang: true, ends: 100*time.Minute + 30*time.Minute +
			3*time.Hour, lost: 4 * 40.0 / 60},
		"one that saves when it is evicted": {every: 99 * time.Minute, ends: 100*time.Minute + 30*time.Minute +
			4*time.Hour - 99*time.Minute, lost: 4 * 1.0 / 60},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := gpuJob("low", 4, 1000)
			if tc.gang {
				job = gpuJob("low", 2, 1000)
				job.Gang, job.Pods = true, 2
			}
			job.Duration, job.CheckpointEvery = 4*time.Hour, tc.every
			urgent := gpuJob("urgent", 4, 1000)
			urgent.Arrival, urgent.Duration, urgent.Priority = 100*time.Minute, 30*time.Minute, 10
			in := Input{Name: "test", Nodes: gpuNodes(1, 4), Jobs: []trace.Job{job, urgent}}
			out := mustRun(t, "../../../manifests/replace-default/scheduler-config.yaml", in,
				Options{Mode: replayed.VirtualTime, Profile: "gang-scheduler"})
			if math.Abs(out.LostGPUHours-tc.lost) > 0.01 {
				t.Errorf("%.2f GPU hours are lost, want %.2f", out.LostGPUHours, tc.lost)
			}
			if got := time.Duration(out.JobCompletion.Max * float64(time.Second)); (got - tc.ends).Abs() > time.Minute {
				t.Errorf("it ended after %s, want %s", got, tc.ends)
			}
		})
	}
}
