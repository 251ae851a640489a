package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"

	"berth.dev/berth/hack/bench/rig"
)

// run is what one run of one contender shows. Figures per pod are of the pods that were bound after the first reading.
type run struct {
	Nodes           int     `json:"nodes"`
	Workload        string  `json:"workload"`
	Pods            int     `json:"pods"`
	Contender       string  `json:"contender"`
	Repeat          int     `json:"repeat"`
	MeasuredPods    int     `json:"measuredPods"`
	CPUMillisPerPod float64 `json:"cpuMillisPerPod"`
	PodsPerSecond   float64 `json:"podsPerSecond"`
	// The median is estimated from a histogram whose first bound is 1 ms, and each other twice the one before.
	AlgorithmMedianMillis float64 `json:"algorithmMedianMillis"`
	AlgorithmMeanMillis   float64 `json:"algorithmMeanMillis"`
	AllocationsPerPod     float64 `json:"allocationsPerPod"`
	AllocatedKiBPerPod    float64 `json:"allocatedKiBPerPod"`
	PeakResidentMiB       float64 `json:"peakResidentMiB"`
	PeakHeapMiB           float64 `json:"peakHeapMiB"`
	// StartCPUSeconds is the scheduler's CPU time up to the first reading: reading nodes and pods, and the first pods.
	StartCPUSeconds float64 `json:"startCPUSeconds"`
	// OtherCores is how many cores were busy on average with what is no part of the benchmark.
	OtherCores float64 `json:"otherCores"`
	// FailedAttempts is how often a pod was tried and not placed. Where it is not 0, the run did more work than others.
	FailedAttempts float64 `json:"failedAttempts"`
}

// reading is CPU time at one moment.
type reading struct {
	scheduler time.Duration
	load      rig.Load
}

func takeReading(scheduler *rig.Scheduler) (reading, error) {
	used, err := scheduler.CPU()
	if err != nil {
		return reading{}, err
	}
	load, err := rig.ReadLoad()
	return reading{used, load}, err
}

// gauges are what the scheduler counts itself.
type gauges struct {
	allocations, allocatedBytes float64
	// heapBytes is the address space of the heap. It never shrinks, so it is the largest size that the heap has had.
	heapBytes      float64
	algorithm      histogram
	failedAttempts float64
}

func readGauges(families map[string]*dto.MetricFamily) gauges {
	g := gauges{algorithm: histogram{upTo: map[float64]float64{}}}
	for name, to := range map[string]*float64{
		"go_memstats_mallocs_total":     &g.allocations,
		"go_memstats_alloc_bytes_total": &g.allocatedBytes,
		"go_memstats_heap_sys_bytes":    &g.heapBytes,
	} {
		for _, m := range families[name].GetMetric() {
			*to = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	for _, m := range families["scheduler_scheduling_algorithm_duration_seconds"].GetMetric() {
		g.algorithm.count = float64(m.GetHistogram().GetSampleCount())
		g.algorithm.sum = m.GetHistogram().GetSampleSum()
		for _, b := range m.GetHistogram().GetBucket() {
			g.algorithm.upTo[b.GetUpperBound()] = float64(b.GetCumulativeCount())
		}
	}
	for _, m := range families["scheduler_schedule_attempts_total"].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "result" && (l.GetValue() == "unschedulable" || l.GetValue() == "error") {
				g.failedAttempts += m.GetCounter().GetValue()
			}
		}
	}
	return g
}

// trial is one run that is to be made.
type trial struct {
	nodes, pods, repeat int
	workload            *workload
	contender           *contender
}

// measure makes a run on a control plane of its own.
func measure(ctx context.Context, t trial, schedulerEnv, gates []string) (_ run, err error) {
	file, err := fleetFile(t.nodes)
	if err != nil {
		return run{}, err
	}
	bed, err := rig.Start(ctx, file)
	if err != nil {
		return run{}, err
	}
	defer func() { err = errors.Join(err, bed.Stop()) }()
	bed.SchedulerEnv = schedulerEnv
	if err := bed.Namespace(ctx, namespace); err != nil {
		return run{}, err
	}
	if err := rig.CreateAll(t.pods, func(i int) error {
		return bed.CreatePod(ctx, t.workload.named(i, t.contender.profile))
	}); err != nil {
		return run{}, err
	}
	watched, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	bound, err := watchBindings(watched, bed, t.pods)
	if err != nil {
		return run{}, err
	}
	scheduler, err := bed.StartScheduler(t.contender.config, slices.Concat(t.contender.gates, gates)...)
	if err != nil {
		return run{}, err
	}
	defer scheduler.Stop()
	return t.follow(ctx, scheduler, bound)
}

// follow takes the readings: one when the first pod is bound, and one when the last is bound and its events are
// written. The metrics are read before the first and after the second, because that costs the scheduler CPU time, too.
func (t trial) follow(ctx context.Context, scheduler *rig.Scheduler, bound *bindings) (run, error) {
	if err := bound.await(ctx, bound.first, scheduler); err != nil {
		return run{}, err
	}
	familiesBefore, err := scheduler.Metrics(ctx)
	if err != nil {
		return run{}, err
	}
	boundBefore := bound.count()
	before, err := takeReading(scheduler)
	if err != nil {
		return run{}, err
	}
	if err := bound.await(ctx, bound.all, scheduler); err != nil {
		return run{}, err
	}
	if err := rig.Settle(ctx); err != nil {
		return run{}, err
	}
	after, err := takeReading(scheduler)
	if err != nil {
		return run{}, err
	}
	peak, err := rig.PeakResidentBytes(scheduler.PID())
	if err != nil {
		return run{}, err
	}
	familiesAfter, err := scheduler.Metrics(ctx)
	if err != nil {
		return run{}, err
	}
	measured := t.pods - boundBefore
	if measured < t.pods/2 {
		return run{}, fmt.Errorf("%d of %d pods were bound before the first reading was taken; more pods are needed",
			boundBefore, t.pods)
	}
	gaugesBefore, gaugesAfter := readGauges(familiesBefore), readGauges(familiesAfter)
	algorithm := gaugesAfter.algorithm.minus(gaugesBefore.algorithm)
	perPod := func(total float64) float64 { return total / float64(measured) }
	return run{
		Nodes:                 t.nodes,
		Workload:              t.workload.name,
		Pods:                  t.pods,
		Contender:             t.contender.name,
		Repeat:                t.repeat,
		MeasuredPods:          measured,
		CPUMillisPerPod:       perPod(1000 * (after.scheduler - before.scheduler).Seconds()),
		PodsPerSecond:         bound.perSecond(),
		AlgorithmMedianMillis: 1000 * algorithm.median(),
		AlgorithmMeanMillis:   1000 * algorithm.mean(),
		AllocationsPerPod:     perPod(gaugesAfter.allocations - gaugesBefore.allocations),
		AllocatedKiBPerPod:    perPod(gaugesAfter.allocatedBytes-gaugesBefore.allocatedBytes) / (1 << 10),
		PeakResidentMiB:       float64(peak) / (1 << 20),
		PeakHeapMiB:           gaugesAfter.heapBytes / (1 << 20),
		StartCPUSeconds:       before.scheduler.Seconds(),
		OtherCores:            after.load.OtherCoresSince(before.load),
		FailedAttempts:        gaugesAfter.failedAttempts,
	}, nil
}
