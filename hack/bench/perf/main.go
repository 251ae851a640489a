// Command perf runs kube-scheduler's own benchmark, scheduler_perf, with the stock scheduler and with berth-scheduler,
// on cases that upstream defines, for figures that compare with upstream's.
//
// Upstream's harness is made for "go test", and needs modules that nothing else here does, so this is a module of its
// own: the project's tests, its linter and its go.mod do not know of it. The harness runs API server and scheduler in
// one process, and etcd in another. What the scheduler alone uses is measured by the other cases of hack/bench.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"berth.dev/berth/hack/bench/rig"
)

// defaultCases are the basic ones at about 500 and at 5,000 nodes.
var defaultCases = []string{
	"misc/SchedulingBasic/500Nodes",
	"misc/SchedulingBasic/5000Nodes_10000Pods",
	"affinity/SchedulingPreferredPodAffinity/500Nodes",
	"affinity/SchedulingPreferredPodAffinity/5000Nodes_5000Pods",
	"topology_spreading/TopologySpreading/500Nodes",
	"topology_spreading/TopologySpreading/5000Nodes_5000Pods",
	"default_preemption/Unschedulable/500Nodes/10Init/1kPods",
	"default_preemption/Unschedulable/5kNodes/100Init/10kPods",
	"misc/SchedulingWithMixedChurn/1000Nodes",
	"misc/SchedulingWithMixedChurn/5000Nodes_10000Pods",
}

var (
	cases = flag.String("cases", strings.Join(defaultCases, ","),
		"cases to run, as FOLDER/CASE/WORKLOAD of scheduler_perf; * stands for any part of a name")
	contenders = flag.String("contenders", "stock,berth",
		"schedulers to measure: kube-scheduler's default profile, "+shippedProfile+" as it is installed")
	repeats = flag.Int("repeats", 1, "number of runs of each")
	// profiles is a folder.
	profiles = flag.String("profiles", "", "write a CPU profile of the last run of each case and scheduler to this folder")
)

func main() {
	rig.Main(`builds kube-scheduler's benchmark, scheduler_perf, with berth's plugins and an etcd for it,
and runs each case in a process of its own. Cases, pods and nodes are upstream's; the profile of all pods is the
default one of the stock scheduler, or berth-scheduler as it is installed.

Run it in its folder, which "go run -C" does. The first build takes several minutes, and leaves a copy of Kubernetes'
source in .berth/perf of the project: upstream's harness gets one call more, by which the scheduler that it makes
becomes berth-scheduler.

  # Everything, three times
  go run -C hack/bench/perf . --repeats 3 --json "$PWD/perf.json"

  # One case of upstream's, by the folder of scheduler_perf, the case and the workload
  go run -C hack/bench/perf . --cases misc/SchedulingBasic/500Nodes

  # All cases with 500 nodes
  go run -C hack/bench/perf . --cases '*/*/500Nodes'`, bench)
}

// bench measures everything, and prints what there is even if a run fails.
func bench(ctx context.Context, out io.Writer) (_ any, err error) {
	var chosen []contender
	for name := range strings.SplitSeq(*contenders, ",") {
		if c := contender(name); c != stock && c != berth {
			return nil, fmt.Errorf("--contenders: %q is unknown; want stock, berth or both", name)
		}
		chosen = append(chosen, contender(name))
	}
	if *repeats < 1 {
		return nil, fmt.Errorf("--repeats: %d is not allowed; want at least 1", *repeats)
	}
	upstream, err := findUpstream(ctx)
	if err != nil {
		return nil, err
	}
	// A name that upstream does not have is refused before anything is built.
	var list []*perfCase
	for name := range strings.SplitSeq(*cases, ",") {
		matching, err := readCases(casesOf(upstream), name)
		if err != nil {
			return nil, fmt.Errorf("--cases: %w", err)
		}
		list = append(list, matching...)
	}
	dir, err := os.MkdirTemp("", "berth-perf")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the benchmark: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	rig.Progress("building the harness and etcd")
	h, err := build(ctx, dir, upstream)
	if err != nil {
		return nil, err
	}
	runs, failed := h.runAll(ctx, list, chosen)
	if len(runs) == 0 {
		return nil, failed
	}
	return runs, errors.Join(writeTable(out, runs), failed)
}

// runAll returns what was measured, and what failed.
func (h *harness) runAll(ctx context.Context, list []*perfCase, chosen []contender) (runs []run, failed error) {
	began, at := time.Now(), 0
	total := len(list) * len(chosen) * *repeats
	for _, c := range list {
		for repeat, contender := range rig.InTurn(chosen, *repeats) {
			at++
			rig.Progress("%s  run %d of %d: %s, %s, repeat %d", time.Since(began).Round(time.Second), at, total,
				c.name, contender, repeat)
			r, err := h.measure(ctx, c, contender)
			if ctx.Err() != nil {
				return runs, errors.Join(failed, ctx.Err())
			}
			if err != nil {
				err = fmt.Errorf("%s, %s: %w", c.name, contender, err)
				rig.Progress("    failed: %v", err)
				failed = errors.Join(failed, err)
				continue
			}
			r.Repeat = repeat
			rig.Progress("    %.0f pods/s, %.2f cores busy with other work", r.PodsPerSecond, r.OtherCores)
			runs = append(runs, r)
		}
	}
	return runs, failed
}

// writeTable writes a row for each contender on each case: medians, with the least and the most in brackets.
func writeTable(out io.Writer, runs []run) error {
	type key struct {
		of     string
		repeat int
	}
	ofStock := map[key]*run{}
	for i := range runs {
		if r := &runs[i]; r.Contender == stock {
			ofStock[key{r.Case, r.Repeat}] = r
		}
	}
	for i := range runs {
		r := &runs[i]
		if base := ofStock[key{r.Case, r.Repeat}]; base != nil {
			r.PodsOverStock, r.CPUOverStock = r.PodsPerSecond/base.PodsPerSecond, r.CPUSeconds/base.CPUSeconds
		}
	}
	return rig.Table(out, runs)
}
