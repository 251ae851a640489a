package guard

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"

	"berth.dev/berth/hack/bench/rig"
	"berth.dev/berth/pkg/lab/replay"
	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/lab/trace"
)

// ReplayRow is what a replay of a cluster of some size takes. CPU is that of the whole process.
type ReplayRow struct {
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

// LargeReplay is the name of what MeasureReplay measures.
const LargeReplay = "replay-large"

// MeasureReplay replays six hours on that many nodes.
func MeasureReplay(ctx context.Context, out io.Writer, nodes int, profiles string) ([]ReplayRow, error) {
	return rowsOf[ReplayRow](ctx, out, Child{Name: LargeReplay, Nodes: nodes, Profiles: profiles}, onlyBerth, 1)
}

// replayLarge replays the queue in this process.
func (c contender) replayLarge(nodes int) (ReplayRow, error) {
	began := time.Now()
	result, used, err := c.play(nodes, sixHours(nodes))
	if err != nil {
		return ReplayRow{}, err
	}
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return ReplayRow{}, fmt.Errorf("reading what this process used: %w", err)
	}
	return ReplayRow{Scheduler: string(c), Pods: result.Pods, Gangs: result.GangsStarted,
		Allocated: result.AllocatedPercent, WaitMin: result.PodWait.Mean / 60, CPUSeconds: used, PodMillis: 1000 * used / float64(result.Pods),
		PeakMiB: float64(usage.Maxrss) / 1024, Seconds: time.Since(began).Seconds()}, nil
}

// play replays jobs on a cluster until all have ended, and returns the CPU seconds that it took besides.
func (c contender) play(nodes int, jobs []trace.Job) (*replayed.Result, float64, error) {
	config, err := c.configuration()
	if err != nil {
		return nil, 0, err
	}
	before := rig.UsedCPU()
	result, err := replay.Run(context.Background(), config, clusterOf(nodes, gpusPerNode, jobs),
		replay.Options{Mode: replayed.VirtualTime, Profile: c.profile(), Seed: 1})
	if err != nil {
		return nil, 0, err
	}
	used := (rig.UsedCPU() - before).Seconds()
	if result.JobsCompleted != result.Jobs {
		return nil, 0, fmt.Errorf("%d of %d jobs were completed", result.JobsCompleted, result.Jobs)
	}
	return result, used, nil
}

// replay is the CPU time for each pod of a queue.
func (c contender) replay() (float64, error) {
	result, used, err := c.play(32, queue(c == berth))
	if err != nil {
		return 0, err
	}
	return used / float64(result.Pods), nil
}

// plansPerGang is how many plans for gangs are made in that queue, for each gang that starts.
func (c contender) plansPerGang() (float64, error) {
	result, _, err := c.play(32, queue(true))
	if err != nil {
		return 0, err
	}
	plans, err := plansMade()
	return plans / float64(max(result.GangsStarted, 1)), err
}

// plansMade is how many plans for gangs this process has made.
func plansMade() (float64, error) {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		return 0, fmt.Errorf("reading the metrics: %w", err)
	}
	plans := uint64(0)
	for _, family := range families {
		if family.GetName() == "berth_gang_plan_duration_seconds" {
			for _, m := range family.GetMetric() {
				plans += m.GetHistogram().GetSampleCount()
			}
		}
	}
	return float64(plans), nil
}

// podsPerNode is how many pods of the queue there are for each node.
const podsPerNode = 10

// sixHours are jobs that come within six hours and ask for nine tenths of the GPUs meanwhile. 2% are gangs of 2 to 16
// whole nodes, with two fifths of the GPUs.
func sixHours(nodes int) []trace.Job {
	random := rand.New(rand.NewPCG(1, 1))
	var jobs []trace.Job
	for pods := 0; pods < podsPerNode*nodes; {
		job := trace.Job{Name: fmt.Sprintf("job-%06d", len(jobs)),
			Arrival:  time.Duration(random.Int64N(int64(6 * time.Hour))),
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
