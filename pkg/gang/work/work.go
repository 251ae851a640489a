package work

import (
	"fmt"
	"time"
)

// Work is what is known of the work of a pod that may be evicted. What it says of itself counts only as far as it is
// possible.
type Work struct {
	// Started is when the pod began to run.
	Started time.Time
	// Saved are the times at which checkpoints are said to have been written.
	Saved []time.Time
	// Every is how much of the work is lost at most, because a checkpoint is written that often; 0 says nothing.
	Every time.Duration
	// Restart is how long the pod needs to come back to where it was, and Protected for how long after its start it is
	// the last to go of its priority.
	Restart, Protected time.Duration
	// MilliGPUs and MilliCPUs are what it occupies.
	MilliGPUs, MilliCPUs int64
}

// durations are those that annotations hold.
func (w *Work) durations() [3]*time.Duration {
	return [3]*time.Duration{&w.Every, &w.Restart, &w.Protected}
}

// Limits bound what pods may say of their work, so that none makes itself untouchable.
type Limits struct {
	// Unsaved is the longest time of work that counts as lost. With 0 work does not count at all.
	Unsaved time.Duration
	// Restart and Protected are the longest that count.
	Restart, Protected time.Duration
}

const (
	// skew is by how much the clock of a node may be ahead: a checkpoint that is newer than now by less was written
	// now.
	skew = time.Minute
	// cpusOfGPU is for how many CPUs a GPU counts where work without GPUs is compared with work on some. An hour of a
	// GPU costs about as much as an hour of a hundred CPUs.
	cpusOfGPU = 100
)

// Credible reports whether a checkpoint can have been written at the time that is told: not in the future.
func Credible(saved, now time.Time) bool { return !saved.After(now.Add(skew)) }

// Since returns from when on the work is not saved. Checkpoints of the future and of the time before the pod are no
// checkpoints of its work.
func (w *Work) Since(now time.Time) time.Time {
	since := w.Started
	for _, saved := range w.Saved {
		if saved.After(since) && Credible(saved, now) {
			since = saved
		}
	}
	if earliest := now.Add(-w.Every); w.Every > 0 && since.Before(earliest) {
		since = earliest
	}
	if since.After(now) {
		return now
	}
	return since
}

// Lost is what an eviction loses, in thousandths of GPU minutes: the time since the work was saved and the time to come
// back, in started minutes, of all GPUs of the pod, or of its CPUs if it has none. Seconds do not count, so that of
// pods that started together the fewest go.
func (w *Work) Lost(now time.Time, most Limits) int64 {
	if most.Unsaved == 0 || w.Started.IsZero() {
		return 0
	}
	lost := min(now.Sub(w.Since(now)), most.Unsaved) + min(w.Restart, most.Restart)
	minutes := int64((lost + time.Minute - 1) / time.Minute)
	if w.MilliGPUs > 0 {
		return minutes * w.MilliGPUs
	}
	return minutes * w.MilliCPUs / cpusOfGPU
}

// IsProtected reports whether the pod has just started and asks for time to do something.
func (w *Work) IsProtected(now time.Time, most Limits) bool {
	return !w.Started.IsZero() && now.Before(w.Started.Add(min(w.Protected, most.Protected)))
}

// Describe says what an eviction loses: "8.0 GPU hours, not saved for 1h0m0s".
func (w *Work) Describe(now time.Time, most Limits) string {
	lost, unit := w.Lost(now, most), "GPU"
	if w.MilliGPUs == 0 {
		lost, unit = lost*cpusOfGPU, "CPU"
	}
	since := w.Since(now)
	saved := "not saved for "
	if since.Equal(w.Started) {
		saved = "not saved since its start "
	}
	text := fmt.Sprintf("%.1f %s hours, %s%s", float64(lost)/1000/60, unit, saved, now.Sub(since).Round(time.Second))
	if since.Equal(w.Started) {
		text += " ago"
	}
	if restart := min(w.Restart, most.Restart); restart > 0 {
		text += fmt.Sprintf(", and %s to come back", restart)
	}
	return text
}
