// Command defragment measures what moving pods for gangs gains: it replays loads of about 95% with the real scheduler,
// without moves and with them, and prints both.
//
// All jobs have one priority. Half of them save their work every 30 minutes, four tenths every hour, and a tenth never.
// Pods declare how long they run: what they do, or what users ask for, one to five times as much.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"berth.dev/berth/hack/bench/replays"
	"berth.dev/berth/pkg/replay"
	"berth.dev/berth/pkg/replay/replayed"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/trace"
)

func main() {
	data := flag.String("data", "../shared/data", "folder of the traces")
	only := flag.String("only", "", "replay only the loads whose name has this in it")
	moves := flag.String("moves", "2,20", "movesPerHour to compare with none")
	held := flag.String("held", "0,2", "byTime.mostGangs to compare")
	declare := flag.String("declare", "truth,limits", "what pods declare: truth or limits")
	flag.Parse()
	fmt.Fprintln(os.Stdout, "| load | declared | gangs held | moves an hour, at most | allocated | gangs wait, mean / p50 / p95 minutes"+
		" | others | pods moved an hour | GPU hours lost an hour |")
	fmt.Fprintln(os.Stdout, "|---|---|---|---|---|---|---|---|---|")
	for _, l := range loads {
		if !strings.Contains(l.name, *only) {
			continue
		}
		for declared := range strings.SplitSeq(*declare, ",") {
			jobs, err := l.jobs(*data, declared == "limits")
			if err != nil {
				fail(err)
			}
			for gangs := range strings.SplitSeq(*held, ",") {
				for most := range strings.SplitSeq("0,"+*moves, ",") {
					if err := l.run(jobs, declared, gangs, most); err != nil {
						fail(err)
					}
				}
			}
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "defragment:", err)
	os.Exit(1)
}

const configuration = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: defragment
    plugins:
      queueSort: {disabled: [{name: "*"}], enabled: [{name: Coscheduling}]}
      postFilter: {enabled: [{name: Coscheduling}]}
      multiPoint: {enabled: [{name: Coscheduling}]}
    pluginConfig:
      - name: Coscheduling
        args:
          reservation: {maxNodesPercent: 100, byTime: {mostGangs: %s}}
          defragment: {movesPerHour: %s, lostGPUHoursPerHour: 100000}
      - name: NodeResourcesFit
        args:
          scoringStrategy: {type: MostAllocated, resources: [{name: nvidia.com/gpu, weight: 1}]}
      - {name: PodTopologySpread, args: {defaultingType: List}}
`

func (l *load) run(jobs []trace.Job, declared, gangs, moves string) error {
	config, err := schedulerconfig.Parse("defragment", []byte(fmt.Sprintf(configuration, gangs, moves)))
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	out, err := replay.Run(context.Background(), config, replay.Input{Name: l.name, Nodes: replays.TrainingNodes(l.nodes), Jobs: jobs},
		replay.Options{Mode: replayed.VirtualTime, Horizon: l.until - l.from, Warmup: (l.until - l.from) / 10,
			Controlled: true})
	if err != nil {
		return fmt.Errorf("replaying %s: %w", l.name, err)
	}
	hours := out.VirtualSeconds / 3600
	gang := func(of bool) func(*trace.Job) bool { return func(j *trace.Job) bool { return j.Gang == of } }
	fmt.Fprintf(os.Stdout, "| %s, %d nodes, %.0f%% | %s | %s | %s | %.2f%% | %s | %s | %.2f | %.2f |\n", l.name, l.nodes,
		100*l.share(jobs), declared, gangs, moves, out.AllocatedPercent, replays.Waits(jobs, out, gang(true)), replays.Waits(jobs, out, gang(false)), float64(out.Preemptions)/hours, out.LostGPUHours/hours)
	return nil
}

// share is what the jobs ask for within the time, as a part of what the nodes have.
func (l *load) share(jobs []trace.Job) float64 {
	sum := time.Duration(0)
	for i := range jobs {
		j := &jobs[i]
		sum += min(j.Duration, l.until-l.from-j.Arrival) * time.Duration(j.GPUs*j.Pods)
	}
	return float64(sum) / float64(l.until-l.from) / float64(l.nodes*gpusPerNode)
}
