package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"berth.dev/berth/hack/bench/rig"
	"berth.dev/berth/pkg/lab/replay"
	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/lab/trace"
	"berth.dev/berth/pkg/schedulerconfig"
)

// gpusPerNode is the size of every node. A job of more GPUs is a gang whose members take whole nodes.
const gpusPerNode = 8

// startRow is how long the jobs of a trace wait.
type startRow struct {
	RunTimes     string  `json:"runTimes" row:"run times"`
	Gangs        int     `json:"gangs" column:"gangs|%.0f"`
	Mean         float64 `json:"gangWaitMinutes" column:"mean wait,\nmin|%.0f"`
	P50          float64 `json:"gangWaitP50Minutes" column:"p50|%.0f"`
	P95          float64 `json:"gangWaitP95Minutes" column:"p95|%.0f"`
	Longest      float64 `json:"gangWaitMaxMinutes" column:"max|%.0f"`
	Others       float64 `json:"otherWaitMinutes" column:"others|%.0f"`
	ByGPUs       float64 `json:"waitByGPUsMinutes" column:"by GPUs|%.0f"`
	Allocated    float64 `json:"allocatedPercent" column:"GPUs\nallocated, %|%.1f"`
	Told         int     `json:"toldStarts" column:"starts\ntold|%.0f"`
	ToldErrorP50 float64 `json:"toldErrorP50Minutes" column:"error p50,\nmin|%.1f"`
	ToldErrorP95 float64 `json:"toldErrorP95Minutes" column:"p95|%.1f"`
	PodMillis    float64 `json:"podMillis" column:"CPU of\na pod, ms|%.1f"`
}

// startTimes replays a whole trace in virtual time, first without run times and then with the true ones declared.
func startTimes(ctx context.Context, out io.Writer, o *options) (any, error) {
	all, err := readPublished(o.trace)
	if err != nil {
		return nil, fmt.Errorf("reading the trace: %w", err)
	}
	config, err := schedulerconfig.Load(o.config)
	if err != nil {
		return nil, err
	}
	nodes := cmp.Or(o.nodes, 16)
	all = slices.DeleteFunc(all, func(p published) bool { return p.gpus <= 0 || p.gpus > nodes*gpusPerNode })
	var rows []startRow
	for _, runTimes := range []string{"not declared", "declared"} {
		rig.Progress("replaying %d jobs with run times %s", len(all), runTimes)
		jobs := make([]trace.Job, len(all))
		for i := range all {
			jobs[i] = all[i].job(i)
			if runTimes == "declared" {
				jobs[i].RunTime = jobs[i].Duration
			}
		}
		result, err := replay.Run(ctx, config, replay.NewInput(o.trace, cluster(nodes), jobs),
			replay.Options{Mode: replayed.VirtualTime, Profile: "gang-scheduler"})
		if err != nil {
			return rows, fmt.Errorf("replaying: %w", err)
		}
		row := startRowOf(result, all, jobs)
		row.RunTimes = runTimes
		rows = append(rows, row)
	}
	return rows, rig.Table(out, rows)
}

// cluster is a number of nodes that are all alike.
func cluster(nodes int) []trace.Node {
	list := make([]trace.Node, nodes)
	for i := range list {
		list[i] = trace.Node{Name: fmt.Sprintf("node-%03d", i), CPUMilli: 96_000, MemoryMiB: 786_432, GPUs: gpusPerNode,
			Model: "NVIDIA-A100-SXM4-80GB", MicroDollarsPerHour: 10_000_000}
	}
	return list
}

// job is a job as the scheduler gets it.
func (p *published) job(id int) trace.Job {
	t := trace.Job{Name: fmt.Sprintf("j%05d", id), Arrival: whole(p.submitSeconds),
		Duration: whole(max(p.runSeconds, 1)), Pods: 1,
		CPUMilli: 1000, MemoryMiB: 1024, GPUs: p.gpus, GPUMilli: 1000,
		Namespace: strings.ReplaceAll(p.user, "_", "-")}
	if p.gpus > gpusPerNode {
		t.Gang, t.Pods, t.GPUs = true, (p.gpus+gpusPerNode-1)/gpusPerNode, gpusPerNode
	}
	return t
}

// startRowOf counts the waits in minutes of the jobs that started.
func startRowOf(result *replayed.Result, all []published, jobs []trace.Job) startRow {
	var gangs []float64
	sum, singles, others, weighted, gpus := 0.0, 0, 0.0, 0.0, 0.0
	for i := range jobs {
		j := &jobs[i]
		start, started := result.Starts[j.Name]
		if !started {
			continue
		}
		wait := (start - j.Arrival.Seconds()) / 60
		if j.Gang {
			gangs, sum = append(gangs, wait), sum+wait
		} else {
			singles, others = singles+1, others+wait
		}
		weighted += wait * float64(all[i].gpus)
		gpus += float64(all[i].gpus)
	}
	row := startRow{Gangs: len(gangs), Others: others / float64(max(1, singles)), ByGPUs: weighted / max(1, gpus),
		Allocated: result.AllocatedPercent, Told: result.ToldStartError.Count, ToldErrorP50: result.ToldStartError.P50 / 60,
		ToldErrorP95: result.ToldStartError.P95 / 60, PodMillis: 1000 * result.Timing.CPU / float64(max(1, result.Pods))}
	if len(gangs) > 0 {
		slices.Sort(gangs)
		last := len(gangs) - 1
		row.Mean, row.P50, row.P95, row.Longest = sum/float64(len(gangs)), gangs[last/2], gangs[last*95/100], gangs[last]
	}
	return row
}

func whole(s float64) time.Duration { return time.Duration(math.Round(s)) * time.Second }
