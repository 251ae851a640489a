package work

import (
	"fmt"
	"time"
)

// Work is the work of a pod that may be evicted.
type Work struct {
	// Started is when the pod began to run.
	Started time.Time
	// Saved are the declared times of checkpoints.
	Saved []time.Time
	// Every is the time between two checkpoints, 0 if it is not known: no more work is lost.
	Every time.Duration
	// Restart is how long the pod needs to get back to where it was, and Protected for how long after its start it is
	// evicted after others of its priority.
	Restart, Protected time.Duration
	// MilliGPUs and MilliCPUs are what it uses. MilliCPUs is 0 for a pod with GPUs.
	MilliGPUs, MilliCPUs int64
}

// durations are the fields that annotations declare.
func (w *Work) durations() [3]*time.Duration {
	return [3]*time.Duration{&w.Every, &w.Restart, &w.Protected}
}

// Complete takes from the other what this one does not declare.
func (w *Work) Complete(other *Work) {
	for i, own := range w.durations() {
		if *own == 0 {
			*own = *other.durations()[i]
		}
	}
}

// Limits bound what pods may declare, so that no pod can avoid every eviction.
type Limits struct {
	// Unsaved is the longest time of work that counts as lost. With 0, work does not count.
	Unsaved time.Duration
	// Restart and Protected are the longest that count.
	Restart, Protected time.Duration
}

const (
	// skew is by how much the clock of a node may be ahead.
	skew = time.Minute
	// cpusOfGPU compares work on CPUs with work on GPUs: an hour of a GPU costs about as much as one of a hundred CPUs.
	cpusOfGPU = 100
)

// Credible reports whether the time of a checkpoint is not in the future.
func Credible(saved, now time.Time) bool { return !saved.After(now.Add(skew)) }

// Since returns since when the work is not saved. Checkpoints in the future or from before the start do not count.
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

// Lost is what an eviction loses, in thousandths of GPU minutes: the time since the work was saved plus the restart, in
// started minutes, for all GPUs of the pod, or for its CPUs if it has none. Without seconds, pods that started together
// are equal, so that the fewest are evicted.
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

// IsProtected reports whether the pod has started so recently that it is evicted after others of its priority.
func (w *Work) IsProtected(now time.Time, most Limits) bool {
	return !w.Started.IsZero() && now.Before(w.Started.Add(min(w.Protected, most.Protected)))
}

// Describe is the message about what an eviction loses: "8.0 GPU hours, not saved for 1h0m0s".
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
