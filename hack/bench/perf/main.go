// Command perf runs kube-scheduler's own benchmark, scheduler_perf, with the stock scheduler and with berth-scheduler,
// on cases that upstream defines, for figures that compare with upstream's.
//
// Upstream's harness is made for "go test", and needs modules that nothing else here does, so this is a module of its
// own: the project's tests, its linter and its go.mod do not know of it. The harness runs API server and scheduler in
// one process, and etcd in another. What the scheduler alone uses is measured by hack/bench/throughput.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

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

// options are the flags.
type options struct {
	cases      []string
	contenders []string
	repeats    int
	json       string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "perf:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "perf",
		Short: "Run kube-scheduler's own benchmark with the stock scheduler and with berth-scheduler",
		Long: `perf builds kube-scheduler's benchmark, scheduler_perf, with berth's plugins and an etcd for it, and runs each case in a
process of its own. Cases, pods and nodes are upstream's; the profile of all pods is the default one of the stock
scheduler, or berth-scheduler as it is installed.

Run it in its folder, which "go run -C" does. The first build takes several minutes, and leaves a copy of Kubernetes' source
in .berth/perf of the project: upstream's harness gets one call more, by which the scheduler that it makes becomes
berth-scheduler.`,
		Example: `  # Everything, three times
  go run -C hack/bench/perf . --repeats 3 --json "$PWD/perf.json"

  # One case of upstream's, by the folder of scheduler_perf, the case and the workload
  go run -C hack/bench/perf . --cases misc/SchedulingBasic/500Nodes`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bench(cmd.Context(), &o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.cases, "cases", defaultCases, "cases to run, as FOLDER/CASE/WORKLOAD of scheduler_perf")
	f.StringSliceVar(&o.contenders, "contenders", contenderNames(), "schedulers to measure")
	f.IntVar(&o.repeats, "repeats", 1, "number of runs of each, 1 and up")
	f.StringVar(&o.json, "json", "", "write the figures of every run as JSON to this file")
	return cmd
}

// check refuses flags that cannot be used, before anything is built.
func (o *options) check(upstream string) error {
	if o.repeats < 1 {
		return fmt.Errorf("--repeats: %d is not allowed; want 1 or more", o.repeats)
	}
	for _, name := range o.contenders {
		if !slices.Contains(contenderNames(), name) {
			return fmt.Errorf("--contenders: %q is unknown; want some of %s", name, strings.Join(contenderNames(), ", "))
		}
	}
	for _, name := range o.cases {
		if _, err := readCase(upstream, name); err != nil {
			return fmt.Errorf("--cases: %w", err)
		}
	}
	return nil
}

// bench measures everything, and prints what there is even if a run fails.
func bench(ctx context.Context, o *options, out, progress io.Writer) (err error) {
	upstream, err := findUpstream(ctx)
	if err != nil {
		return err
	}
	if err := o.check(casesOf(upstream)); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "berth-perf")
	if err != nil {
		return fmt.Errorf("making a folder for the benchmark: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	fmt.Fprintln(progress, "building the harness and etcd")
	h, err := build(ctx, dir, upstream)
	if err != nil {
		return err
	}
	session, err := rig.Begin()
	if err != nil {
		return err
	}
	runs, failed := o.runAll(ctx, h, progress)
	if len(runs) == 0 {
		return failed
	}
	if err := writeTable(out, runs); err != nil {
		return errors.Join(err, failed)
	}
	return errors.Join(session.End(out, o.json, runs), failed)
}

// runAll runs the contenders one after the other, and each repeat begins with another. It returns what was measured
// until one fails.
func (o *options) runAll(ctx context.Context, h *harness, progress io.Writer) ([]run, error) {
	var runs []run
	began := time.Now()
	total := len(o.cases) * len(o.contenders) * o.repeats
	for _, name := range o.cases {
		c, err := readCase(h.upstream, name)
		if err != nil {
			return runs, err
		}
		for repeat := range o.repeats {
			for i := range o.contenders {
				contender := o.contenders[(i+repeat)%len(o.contenders)]
				fmt.Fprintf(progress, "%s  run %d of %d: %s, %s, repeat %d\n", time.Since(began).Round(time.Second), len(runs)+1,
					total,
					name, contender, repeat+1)
				r, err := h.measure(ctx, c, contender)
				if err != nil {
					return runs, fmt.Errorf("%s, %s: %w", name, contender, err)
				}
				r.Repeat = repeat + 1
				fmt.Fprintf(progress, "    %.0f pods/s, %.2f cores busy with other work\n", r.PodsPerSecond, r.OtherCores)
				runs = append(runs, r)
			}
		}
	}
	return runs, nil
}
