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
	fmt.Fprintln(os.Stdout, "| trace | victims by | GPU hours lost | pods evicted | wait of high mean / p50 / p95, minutes | of low | allocated |")
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
		out, err := replay.Run(context.Background(), config, replay.Input{Name: l.file, Nodes: replays.TrainingNodes(l.nodes), Jobs: jobs},
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

// read returns the jobs of the load with their priorities.
func (l *load) read(path string) ([]trace.Job, error) {
	jobs, said, err := replays.ReadTraining(path, l.nodes, l.from, l.until)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	for i := range jobs {
		jobs[i].Priority = high
		// The traces of itp do not say which jobs are best effort: half of them are.
		if said[i].BestEffort == "1" || said[i].BestEffort == "" && replays.Drawn(jobs[i].Name, "class")%2 == 0 {
			jobs[i].Priority = low
		}
	}
	return jobs, nil
}

// waits says how long jobs of a priority have waited.
func waits(jobs []trace.Job, out *replayed.Result, priority int32) string {
	return replays.Waits(jobs, out, func(j *trace.Job) bool { return j.Priority == priority })
}
