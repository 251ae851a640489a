package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/hack/bench/live"
	"berth.dev/berth/hack/bench/rig"
)

// run is what one run of one contender shows, also as multiples of what stock shows in the same repeat. Figures per pod
// are of the pods that were bound after the first reading.
type run struct {
	Nodes           int     `json:"nodes"`
	Workload        string  `json:"workload"`
	Pods            int     `json:"pods"`
	Contender       string  `json:"contender" row:""`
	Repeat          int     `json:"repeat"`
	MeasuredPods    int     `json:"measuredPods"`
	CPUMillisPerPod float64 `json:"cpuMillisPerPod" column:"CPU\nms/pod|%.2f"`
	CPUOverStock    float64 `json:"cpuOverStock,omitempty" column:"CPU\n× stock|%.2f|optional"`
	PodsPerSecond   float64 `json:"podsPerSecond" column:"\npods/s|%.0f"`
	PodsOverStock   float64 `json:"podsOverStock,omitempty" column:"pods/s\n× stock|%.2f|optional"`
	// The median is estimated from a histogram whose first bound is 1 ms, and each other twice the one before.
	AlgorithmMedianMillis float64 `json:"algorithmMedianMillis" column:"algorithm,\nmedian ms|%.2f"`
	AlgorithmMeanMillis   float64 `json:"algorithmMeanMillis"`
	AllocationsPerPod     float64 `json:"allocationsPerPod" column:"allocations\n/pod|%.0f"`
	AllocatedKiBPerPod    float64 `json:"allocatedKiBPerPod" column:"allocated\nKiB/pod|%.0f"`
	PeakResidentMiB       float64 `json:"peakResidentMiB" column:"peak RSS\nMiB|%.0f"`
	// PeakHeapMiB is the address space of the heap. It never shrinks, so it is the largest size that the heap has had.
	PeakHeapMiB float64 `json:"peakHeapMiB" column:"peak heap\nMiB|%.0f"`
	// StartCPUSeconds is the scheduler's CPU time up to the first reading: reading nodes and pods, and the first pods.
	StartCPUSeconds float64 `json:"startCPUSeconds"`
	// OtherCores is how many cores were busy on average with what is no part of the benchmark.
	OtherCores float64 `json:"otherCores" column:"other work\ncores|%.2f"`
	// FailedAttempts is how often a pod was tried and not placed. Where it is not 0, the run did more work than others.
	FailedAttempts float64 `json:"failedAttempts"`
}

// measure makes a run on a control plane of its own.
func (t trial) measure(ctx context.Context) (r run, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, *runTimeout, fmt.Errorf("the run took longer than %s", *runTimeout))
	defer cancel()
	file, err := fleetFile(t.nodes)
	if err != nil {
		return run{}, err
	}
	err = live.On(ctx, file, func(bed *live.Bed) {
		bed.Namespace(namespace)
		bed.CreatePods(t.pods, func(i int) *v1.Pod { return t.workload.named(i, t.contender.Profile) })
		bound := bed.Watch(namespace)
		scheduler := bed.StartScheduler(t.contender)
		defer scheduler.Stop()
		r = t.follow(bed, scheduler, bound)
	})
	return r, err
}

// follow measures from when the first pod is bound until the last is bound and its events are written.
func (t trial) follow(bed *live.Bed, scheduler *live.Process, bound *live.Bound) run {
	bound.Await(1, scheduler)
	boundBefore, peak := 0, uint64(0)
	use := live.Measure(scheduler, func() {
		boundBefore = bound.Count()
		bound.Await(t.pods, scheduler)
		bed.Settle()
		var err error
		_, peak, err = rig.ResidentBytes(scheduler.PID())
		rig.Fail(err)
	})
	measured := t.pods - boundBefore
	if measured < t.pods/2 {
		rig.Fail(fmt.Errorf("%d of %d pods were bound before the first reading was taken; more pods are needed",
			boundBefore, t.pods))
	}
	algorithm := use.Histogram("scheduler_scheduling_algorithm_duration_seconds")
	perPod := func(total float64) float64 { return total / float64(measured) }
	return run{
		Nodes:                 t.nodes,
		Workload:              t.workload.name,
		Pods:                  t.pods,
		Contender:             t.contender.Name,
		Repeat:                t.repeat,
		MeasuredPods:          measured,
		CPUMillisPerPod:       perPod(1000 * use.CPU.Seconds()),
		PodsPerSecond:         bound.PerSecond(),
		AlgorithmMedianMillis: 1000 * algorithm.Median(),
		AlgorithmMeanMillis:   1000 * algorithm.Mean(),
		AllocationsPerPod:     perPod(use.Grew("go_memstats_mallocs_total")),
		AllocatedKiBPerPod:    perPod(use.Grew("go_memstats_alloc_bytes_total")) / (1 << 10),
		PeakResidentMiB:       float64(peak) / (1 << 20),
		PeakHeapMiB:           use.After.Sum("go_memstats_heap_sys_bytes", "") / (1 << 20),
		StartCPUSeconds:       use.CPUBefore.Seconds(),
		OtherCores:            use.OtherCores,
		FailedAttempts:        use.After.Sum("scheduler_schedule_attempts_total", "result", "unschedulable", "error"),
	}
}
