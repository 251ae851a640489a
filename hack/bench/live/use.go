package live

import (
	"time"

	"berth.dev/berth/hack/bench/rig"
)

// Use is what a scheduler used and counted while something was done.
type Use struct {
	// CPUBefore is what the scheduler had used until then, and CPU what it used meanwhile.
	CPUBefore, CPU time.Duration
	// OtherCores is how many cores were busy on average with what is no part of the benchmark.
	OtherCores float64
	// Before and After are the scheduler's metrics.
	Before, After Metrics
}

// Grew is by how much the counters of a name have grown.
func (u *Use) Grew(name string) float64 { return u.After.Sum(name, "") - u.Before.Sum(name, "") }

// Histogram is what was observed meanwhile.
func (u *Use) Histogram(name string) Histogram {
	return u.After.Histogram(name).Minus(u.Before.Histogram(name))
}

// Measure tells what is used while do runs. The scheduler's metrics are read before the first reading of CPU time and
// after the second, because that costs it CPU time, too.
func Measure(scheduler *Process, do func()) *Use {
	u := &Use{Before: scheduler.Metrics()}
	u.OtherCores = rig.OtherCores(func() {
		u.CPUBefore = rig.Must(rig.ProcessCPU(scheduler.PID()))
		do()
		u.CPU = rig.Must(rig.ProcessCPU(scheduler.PID())) - u.CPUBefore
	})
	u.After = scheduler.Metrics()
	return u
}
