// Command throughput measures what a scheduler costs per pod, and how many pods it places in a second, as clusters
// grow: the shipped profiles and the stock scheduler, on the same pods and nodes. Every run has a local control plane and
// a scheduler process of its own. docs/internals/throughput.md describes the method.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"time"

	"berth.dev/berth/hack/bench/live"
	"berth.dev/berth/hack/bench/rig"
)

var (
	sizes      = rig.List("nodes", []int{500, 1000, 5000, 10000}, "sizes of the cluster, in nodes of 8 GPUs", parseNodes)
	pods       = rig.Count("pods", 2000, "number of pods, and at most two a node")
	streams    = rig.Some("workloads", workloads, "workloads to measure")
	chosen     = rig.Some("contenders", recipes, "contenders to measure")
	repeats    = rig.Count("repeats", 3, "number of runs of each contender")
	runTimeout = flag.Duration("run-timeout", 30*time.Minute, "how long a run may take")
)

func main() {
	rig.Main(`creates pods on a local control plane, starts a scheduler, and measures until the last pod is bound.
Each run has a new control plane. It needs the binaries of "make build".

  # Everything, with the figures of every run
  go run ./hack/bench/throughput --json runs.json

  # A quick look at two contenders
  go run ./hack/bench/throughput --nodes 200 --contenders stock,berth --repeats 1`, bench)
}

func parseNodes(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < minNodes || n > 20_000 {
		return 0, fmt.Errorf("want %d to 20,000 nodes", minNodes)
	}
	return n, nil
}

// bench measures everything, and prints what there is even if a run fails.
func bench(ctx context.Context, out io.Writer) (any, error) {
	var contenders []live.Contender
	for _, r := range *chosen {
		contenders = append(contenders, r.contender())
	}
	trials := trialsOf(*sizes, *pods, *streams, contenders, *repeats)
	var runs []run
	var failed error
	began := time.Now()
	for i, t := range trials {
		rig.Progress("%s  run %d of %d: %s", time.Since(began).Round(time.Second), i+1, len(trials), t)
		r, err := t.measure(ctx)
		if err != nil {
			failed = fmt.Errorf("%s: %w", t, err)
			break
		}
		rig.Progress("    %.2f ms CPU per pod, %.0f pods/s, %.2f cores busy with other work",
			r.CPUMillisPerPod, r.PodsPerSecond, r.OtherCores)
		if r.FailedAttempts > 0 {
			rig.Progress("    warning: %.0f attempts to place a pod failed: this run did more work than others",
				r.FailedAttempts)
		}
		runs = append(runs, r)
	}
	if len(runs) == 0 {
		return nil, failed
	}
	return runs, errors.Join(report(out, runs), failed)
}

// trial is one run that is to be made.
type trial struct {
	nodes, pods, repeat int
	workload            *workload
	contender           live.Contender
}

func (t trial) String() string {
	return fmt.Sprintf("%d nodes, %s, %s, repeat %d", t.nodes, t.workload.name, t.contender.Name, t.repeat)
}

// trialsOf lists the runs in the order in which they are made.
func trialsOf(sizes []int, pods int, streams []*workload, contenders []live.Contender, repeats int) []trial {
	var list []trial
	for _, nodes := range sizes {
		for _, w := range streams {
			for repeat, c := range rig.InTurn(contenders, repeats) {
				list = append(list, trial{nodes, min(pods, mostPods(nodes)), repeat, w, c})
			}
		}
	}
	return list
}
