package live

import (
	"context"
	"fmt"
	"time"

	"berth.dev/berth/hack/bench/rig"
)

// AlgorithmSeconds is the metric of the scheduling algorithm, of which a cycle has one observation.
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

func (b *Bed) readCPU(scheduler *Process) (r cpuReading, err error) {
	pid, err := b.box.PID("control-plane")
	if err != nil {
		return r, err
	}
	if r.controlPlane, err = rig.ProcessCPU(pid); err != nil || scheduler == nil {
		return r, err
	}
	if scheduler.Extender != nil {
		if r.extender, err = rig.ProcessCPU(scheduler.Extender.PID()); err != nil {
			return r, err
		}
	}
	r.scheduler, err = rig.ProcessCPU(scheduler.PID())
	return r, err
}

// Measure tells what is used while do runs. There may be no scheduler. Its metrics are read before the first reading
// of CPU time and after the second, because that costs it CPU time, too.
func (b *Bed) Measure(ctx context.Context, scheduler *Process, do func() error) (*Use, error) {
	u := &Use{}
	var err error
	if scheduler != nil {
		if u.Before, err = scheduler.Metrics(ctx); err != nil {
			return nil, err
		}
	}
	if u.OtherCores, err = rig.OtherCores(func() error { return b.measureCPU(u, scheduler, do) }); err != nil {
		return nil, err
	}
	if scheduler != nil {
		u.After, err = scheduler.Metrics(ctx)
	}
	return u, err
}

func (b *Bed) measureCPU(u *Use, scheduler *Process, do func() error) error {
	before, err := b.readCPU(scheduler)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := do(); err != nil {
		return err
	}
	u.Seconds = time.Since(began).Seconds()
	after, err := b.readCPU(scheduler)
	u.SchedulerCPU, u.ExtenderCPU = after.scheduler-before.scheduler, after.extender-before.extender
	u.SchedulerCPUBefore, u.ControlPlaneCPU = before.scheduler, after.controlPlane-before.controlPlane
	return err
}

// Writes is how many writes of pods, events and PodGroups the API server has served.
func (b *Bed) Writes(ctx context.Context) (float64, error) {
	text, err := b.Client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	metrics, err := parseMetrics(text)
	if err != nil {
		return 0, err
	}
	total := 0.0
	for _, m := range metrics["apiserver_request_total"].GetMetric() {
		if hasLabel(m, "resource", []string{"pods", "events", "podgroups"}) &&
			hasLabel(m, "verb", []string{"POST", "PATCH", "PUT"}) {
			total += m.GetCounter().GetValue()
		}
	}
	return total, nil
}
