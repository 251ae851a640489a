package live

import (
	"time"

	"berth.dev/berth/hack/bench/rig"
)

// AlgorithmSeconds is the metric of the scheduling algorithm: a cycle has one observation.
const AlgorithmSeconds = "scheduler_scheduling_algorithm_duration_seconds"

// Use is what a scheduler, its extender and the control plane used and counted while something was done.
type Use struct {
	Seconds float64
	// SchedulerCPUBefore is what the scheduler had used until then.
	SchedulerCPUBefore                         time.Duration
	SchedulerCPU, ExtenderCPU, ControlPlaneCPU time.Duration
	// OtherCores is how many cores were busy on average with what is no part of the benchmark.
	OtherCores float64
	// Before and After are the scheduler's metrics.
	Before, After Metrics
}

// Grew is by how much the counters of a name have grown.
func (u *Use) Grew(name string) float64 { return u.After.Sum(name, "") - u.Before.Sum(name, "") }

// Histogram is what was observed meanwhile.
func (u *Use) Histogram(name, label string, values ...string) Histogram {
	return u.After.Histogram(name, label, values...).Minus(u.Before.Histogram(name, label, values...))
}

// cpuReading is CPU time at one moment.
type cpuReading struct {
	scheduler, extender, controlPlane time.Duration
}

func (b *Bed) readCPU(scheduler *Process) (r cpuReading) {
	r.controlPlane = rig.Must(rig.ProcessCPU(rig.Must(b.box.PID("control-plane"))))
	if scheduler == nil {
		return r
	}
	if scheduler.Extender != nil {
		r.extender = rig.Must(rig.ProcessCPU(scheduler.Extender.PID()))
	}
	r.scheduler = rig.Must(rig.ProcessCPU(scheduler.PID()))
	return r
}

// Measure tells what is used while do runs. There may be no scheduler. Its metrics are read before the first reading
// of CPU time and after the second, because that costs it CPU time, too.
func (b *Bed) Measure(scheduler *Process, do func()) *Use {
	u := &Use{}
	if scheduler != nil {
		u.Before = scheduler.Metrics()
	}
	u.OtherCores = rig.OtherCores(func() {
		before, began := b.readCPU(scheduler), time.Now()
		do()
		u.Seconds = time.Since(began).Seconds()
		after := b.readCPU(scheduler)
		u.SchedulerCPU, u.ExtenderCPU = after.scheduler-before.scheduler, after.extender-before.extender
		u.SchedulerCPUBefore, u.ControlPlaneCPU = before.scheduler, after.controlPlane-before.controlPlane
	})
	if scheduler != nil {
		u.After = scheduler.Metrics()
	}
	return u
}

// Writes is how many writes of pods, events and PodGroups the API server has served.
func (b *Bed) Writes() float64 {
	text, err := b.Client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(b.ctx)
	rig.Check(err, "reading the API server's metrics")
	total := 0.0
	for _, m := range parseMetrics(text)["apiserver_request_total"].GetMetric() {
		if hasLabel(m, "resource", []string{"pods", "events", "podgroups"}) &&
			hasLabel(m, "verb", []string{"POST", "PATCH", "PUT"}) {
			total += m.GetCounter().GetValue()
		}
	}
	return total
}
