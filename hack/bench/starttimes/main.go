// Command starttimes replays a whole trace through the scheduler, in virtual time, with and without declared run times,
// and prints how long gangs and others wait.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"berth.dev/berth/pkg/lab/replay"
	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/lab/trace"
	"berth.dev/berth/pkg/process/schedulerconfig"
)

// gpusPerNode is the size of every node. A job of more GPUs is a gang whose members take whole nodes.
const gpusPerNode = 8

func main() {
	var b bench
	var declared string
	flag.StringVar(&b.trace, "trace", "../shared/data/itp/cluster02.csv", "the trace")
	flag.IntVar(&b.nodes, "nodes", 16, "number of nodes")
	flag.StringVar(&b.config, "config", "manifests/base/scheduler-config.yaml",
		"scheduler configuration without args of Coscheduling")
	flag.StringVar(&b.reservation, "reservation", "{}", "args of the reservation")
	flag.StringVar(&declared, "declared", "", "bounds of what pods declare, as a part of the truth: 1-1, 0.2-1.2; "+
		"empty: nothing is declared")
	flag.IntVar(&b.jobs, "jobs", math.MaxInt, "replay only the first jobs, that many")
	flag.Parse()
	if declared != "" {
		if _, err := fmt.Sscanf(declared, "%g-%g", &b.low, &b.high); err != nil {
			fmt.Fprintln(os.Stderr, "starttimes: -declared:", err)
			os.Exit(2)
		}
	}
	if err := b.run(); err != nil {
		fmt.Fprintln(os.Stderr, "starttimes:", err)
		os.Exit(1)
	}
}

// bench is one replay. What jobs declare is drawn between low and high, as a part of the truth; nothing is declared if
// both are 0.
type bench struct {
	trace, config, reservation string
	nodes, jobs                int
	low, high                  float64
}

func (b *bench) run() error {
	all, err := readPublished(b.trace)
	if err != nil {
		return fmt.Errorf("reading the trace: %w", err)
	}
	text, err := os.ReadFile(b.config)
	if err != nil {
		return fmt.Errorf("reading the scheduler configuration: %w", err)
	}
	const before = "    pluginConfig:\n"
	c, err := schedulerconfig.Parse(b.config, []byte(strings.ReplaceAll(string(text), before,
		before+"      - {name: Coscheduling, args: {reservation: "+b.reservation+"}}\n")))
	if err != nil {
		return fmt.Errorf("reading the scheduler configuration: %w", err)
	}
	var jobs []trace.Job
	var gpus []float64
	for i := range all {
		if p := &all[i]; p.gpus > 0 && p.gpus <= b.nodes*gpusPerNode && len(jobs) < b.jobs {
			jobs, gpus = append(jobs, b.job(len(jobs), p)), append(gpus, float64(p.gpus))
		}
	}
	out, err := replay.Run(context.Background(), c, replay.NewInput(b.trace, cluster(b.nodes), jobs),
		replay.Options{Mode: replayed.VirtualTime, Profile: "gang-scheduler"})
	if err != nil {
		return fmt.Errorf("replaying: %w", err)
	}
	report(out, jobs, gpus)
	return nil
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
func (b *bench) job(id int, p *published) trace.Job {
	run := max(p.runSeconds, 1)
	t := trace.Job{Name: fmt.Sprintf("j%05d", id), Arrival: whole(p.submitSeconds), Duration: whole(run), Pods: 1,
		CPUMilli: 1000, MemoryMiB: 1024, GPUs: p.gpus, GPUMilli: 1000,
		Namespace: strings.ReplaceAll(p.user, "_", "-")}
	if p.gpus > gpusPerNode {
		t.Gang, t.Pods, t.GPUs = true, (p.gpus+gpusPerNode-1)/gpusPerNode, gpusPerNode
	}
	if b.high > 0 {
		r := rand.New(rand.NewPCG(uint64(id), 3))
		t.RunTime = max(whole(run*(b.low+r.Float64()*(b.high-b.low))), time.Second)
	}
	return t
}

// report prints waits in minutes. weights are the GPUs that the trace has for each job.
func report(out *replayed.Result, jobs []trace.Job, weights []float64) {
	var gangs []float64
	all, sum, others, weighted, gpus := 0, 0.0, 0.0, 0.0, 0.0
	for i := range jobs {
		j := &jobs[i]
		start, started := out.Starts[j.Name]
		if !started {
			continue
		}
		wait := (start - j.Arrival.Seconds()) / 60
		if j.Gang {
			gangs, sum = append(gangs, wait), sum+wait
		} else {
			all, others = all+1, others+wait
		}
		weighted += wait * weights[i]
		gpus += weights[i]
	}
	slices.Sort(gangs)
	last := len(gangs) - 1
	fmt.Fprintf(os.Stdout, "| gangs | mean wait | p50 | p95 | max | others | by GPUs | allocated | told | error p50 | p95 | CPU a pod |\n"+
		"|---|---|---|---|---|---|---|---|---|---|---|---|\n| %d | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %.1f%% | %d | "+
		"%.1f | %.1f | %.1f ms |\n", len(gangs), sum/float64(len(gangs)), gangs[last/2], gangs[last*95/100], gangs[last],
		others/float64(all), weighted/gpus, out.AllocatedPercent, out.ToldStartError.Count, out.ToldStartError.P50/60,
		out.ToldStartError.P95/60, 1000*out.Timing.CPU/float64(max(out.Pods, 1)))
}

func whole(s float64) time.Duration { return time.Duration(math.Round(s)) * time.Second }
