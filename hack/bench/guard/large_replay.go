package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"syscall"
	"time"

	"berth.dev/berth/hack/bench/rig"
	"berth.dev/berth/pkg/lab/replay"
	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/lab/trace"
)

// replayRow is what a replay of a cluster of some size takes. CPU is that of the whole process.
type replayRow struct {
	Scheduler  string  `json:"scheduler" row:"scheduler"`
	Pods       int     `json:"pods" column:"pods|%.0f"`
	Gangs      int     `json:"gangsStarted" column:"gangs\nstarted|%.0f"`
	Allocated  float64 `json:"allocatedPercent" column:"GPUs\nallocated, %|%.1f"`
	WaitMin    float64 `json:"podWaitMinutes" column:"mean wait\nof a pod, min|%.1f"`
	CPUSeconds float64 `json:"cpuSeconds" column:"CPU, s|%.0f"`
	PodMillis  float64 `json:"podMillis" column:"CPU of\na pod, ms|%.1f"`
	PeakMiB    float64 `json:"peakMiB" column:"resident\nat most, MiB|%.0f"`
	Seconds    float64 `json:"seconds" column:"seconds|%.0f"`
}

// replayLarge replays a queue on that many nodes, in a process of its own.
func replayLarge(ctx context.Context, out io.Writer, nodes int) ([]replayRow, error) {
	rig.Progress("replaying %d pods on %d nodes", podsPerNode*nodes, nodes)
	rows := make([]replayRow, 1)
	if err := spawn(ctx, largeReplay, berth, &rows[0], childScale+"="+strconv.Itoa(nodes)); err != nil {
		return nil, err
	}
	return rows, rig.Table(out, rows)
}

// largeReplay is the name of the figure.
const largeReplay = "replay-large"

// replayOf replays the queue in this process.
func (c contender) replayOf(nodes int) (replayRow, error) {
	config, err := c.configuration()
	if err != nil {
		return replayRow{}, err
	}
	began, before := time.Now(), usedCPU()
	result, err := replay.Run(context.Background(), config, clusterOf(nodes, gpusPerNode, sixHours(nodes)),
		replay.Options{Mode: replayed.VirtualTime, Profile: c.profile(), Seed: 1})
	if err != nil {
		return replayRow{}, err
	}
	used := (usedCPU() - before).Seconds()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return replayRow{}, fmt.Errorf("reading what this process used: %w", err)
	}
	if result.JobsCompleted != result.Jobs {
		return replayRow{}, fmt.Errorf("%d of %d jobs were completed", result.JobsCompleted, result.Jobs)
	}
	return replayRow{Scheduler: string(c), Pods: result.Pods, Gangs: result.GangsStarted, Allocated: result.AllocatedPercent,
		WaitMin: result.PodWait.Mean / 60, CPUSeconds: used, PodMillis: 1000 * used / float64(result.Pods),
		PeakMiB: float64(usage.Maxrss) / 1024, Seconds: time.Since(began).Seconds()}, nil
}

// podsPerNode is how many pods of the queue there are for each node.
const podsPerNode = 10

// sixHours are jobs that come within six hours and ask for nine tenths of the GPUs meanwhile. 2% are gangs of 2 to 16
// whole nodes, with two fifths of the GPUs.
func sixHours(nodes int) []trace.Job {
	random := rand.New(rand.NewPCG(1, 1))
	var jobs []trace.Job
	for pods := 0; pods < podsPerNode*nodes; {
		job := trace.Job{Name: fmt.Sprintf("job-%06d", len(jobs)), Arrival: time.Duration(random.Int64N(int64(6 * time.Hour))),
			Duration: time.Duration(random.Int64N(int64(160*time.Minute))) + 20*time.Minute, Pods: 1, GPUMilli: 1000,
			GPUs: []int{1, 1, 1, 1, 1, 1, 1, 2, 4, 8}[random.IntN(10)]}
		if random.IntN(50) == 0 {
			job.Pods, job.GPUs, job.Gang = 2<<random.IntN(4), gpusPerNode, true
		}
		job.CPUMilli, job.MemoryMiB = int64(job.GPUs)*4000, int64(job.GPUs)<<14
		pods += job.Pods
		jobs = append(jobs, job)
	}
	slices.SortFunc(jobs, func(a, b trace.Job) int { return cmp.Compare(a.Arrival, b.Arrival) })
	return jobs
}
