// Command lostwork measures what preemption loses: it replays traces of training jobs with the real scheduler, once with
// victims by priority and number of pods only, and once by unsaved work, and prints both.
//
// Best-effort jobs have a low priority, the others a high one. Half of the jobs save their work every 30 minutes, four
// tenths every hour, and a tenth never.
package main

import (
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"time"

	"berth.dev/berth/hack/bench/replays"
	"berth.dev/berth/pkg/replay"
	"berth.dev/berth/pkg/replay/replayed"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/trace"
)

// load is a part of a trace on a number of nodes of 8 GPUs.
type load struct {
	file        string
	nodes       int
	from, until time.Duration
}

const (
	day = 24 * time.Hour
	// low and high are the priorities of best-effort jobs and of the others.
	low, high = 0, 1000
)

var loads = []load{
	{"itp/cluster02.csv", 10, 10 * day, 24 * day},
	{"itp/cluster03.csv", 16, 10 * day, 24 * day},
	{"philly/mix1.csv", 60, 2 * day, 4 * day},
}

func main() {
	data := flag.String("data", "../shared/data", "folder of the traces")
	only := flag.String("only", "", "replay only the traces whose name has this in it")
	flag.Parse()
	fmt.Fprintln(os.Stdout, "| trace | victims by | GPU hours lost | pods evicted | wait of high p50 / mean / p95, minutes | of low | allocated |")
	fmt.Fprintln(os.Stdout, "|---|---|---|---|---|---|---|")
	for _, l := range loads {
		if !strings.Contains(l.file, *only) {
			continue
		}
		if err := l.compare(*data); err != nil {
			fmt.Fprintln(os.Stderr, "lostwork:", err)
			os.Exit(1)
		}
	}
}

func (l *load) compare(data string) error {
	jobs, err := l.read(filepath.Join(data, l.file))
	if err != nil {
		return err
	}
	for _, by := range []struct {
		name string
		args string
	}{
		{"priority and pods", "{maxUnsavedSeconds: 0}"},
		{"unsaved work", "{}"},
	} {
		config, err := schedulerconfig.Parse("lostwork", []byte(fmt.Sprintf(configuration, by.args)))
		if err != nil {
			return fmt.Errorf("reading the configuration: %w", err)
		}
		out, err := replay.Run(context.Background(), config, replay.Input{Name: l.file, Nodes: l.cluster(), Jobs: jobs},
			replay.Options{Mode: replayed.VirtualTime, Horizon: l.until - l.from})
		if err != nil {
			return fmt.Errorf("replaying %s: %w", l.file, err)
		}
		fmt.Fprintf(os.Stdout, "| %s, %d nodes | %s | %.0f | %d | %s | %s | %.1f%% |\n", l.file, l.nodes, by.name, out.LostGPUHours,
			out.Preemptions, waits(jobs, out, high), waits(jobs, out, low), out.AllocatedPercent)
	}
	return nil
}

const configuration = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: lostwork
    plugins:
      queueSort: {disabled: [{name: "*"}], enabled: [{name: Coscheduling}]}
      postFilter: {enabled: [{name: Coscheduling}]}
      multiPoint: {enabled: [{name: Coscheduling}]}
    pluginConfig:
      - {name: Coscheduling, args: {preemption: %s}}
      - {name: PodTopologySpread, args: {defaultingType: List}}
`

func (l *load) cluster() []trace.Node {
	nodes := make([]trace.Node, l.nodes)
	for i := range nodes {
		nodes[i] = trace.Node{Name: fmt.Sprintf("n%03d", i), CPUMilli: 128_000, MemoryMiB: 1 << 20, GPUs: replays.GPUsPerNode}
	}
	return nodes
}

// read returns the jobs that arrive within the time of the load. Jobs of more than 8 GPUs are gangs of nodes of 8.
func (l *load) read(path string) ([]trace.Job, error) {
	published, err := replays.ReadPublished(path)
	if err != nil {
		return nil, err
	}
	var jobs []trace.Job
	for i, p := range published {
		at := time.Duration(p.SubmitSeconds * float64(time.Second))
		ran := time.Duration(p.RunSeconds * float64(time.Second))
		gpus := p.GPUs
		if at < l.from || at >= l.until || gpus == 0 || ran == 0 || gpus > l.nodes*replays.GPUsPerNode/2 {
			continue
		}
		j := trace.Job{Name: fmt.Sprintf("j%05d", i), Arrival: at - l.from, Duration: ran, Pods: 1, CPUMilli: 1000,
			MemoryMiB: 1024, GPUs: gpus, GPUMilli: 1000, Priority: high}
		if gpus > replays.GPUsPerNode {
			j.Gang, j.Pods, j.GPUs = true, (gpus+replays.GPUsPerNode-1)/replays.GPUsPerNode, replays.GPUsPerNode
		}
		// The traces of itp do not say which jobs are best effort: half of them are.
		if p.BestEffort == "1" || p.BestEffort == "" && draw(j.Name, "class")%2 == 0 {
			j.Priority = low
		}
		switch n := draw(j.Name, "checkpoint") % 10; {
		case n < 5:
			j.CheckpointEvery = 30 * time.Minute
		case n < 9:
			j.CheckpointEvery = time.Hour
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}

// draw returns a number that is always the same for a job.
func draw(job, what string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(what + job)) // never fails
	return h.Sum32() >> 7
}
