// Command throughput measures what a scheduler costs per pod, and how many pods it places in a second, as clusters
// grow: the shipped profiles, these without one of their plugins, and the stock scheduler, on the same pods and nodes.
// Every run has a local control plane and a scheduler process of its own. docs/internals/throughput.md describes the
// method.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"berth.dev/berth/hack/bench/rig"
)

// options are the flags.
type options struct {
	nodes      []int
	pods       map[string]int
	workloads  []string
	contenders []string
	configs    []string
	repeats    int
	runTimeout time.Duration
	gogc       string
	memlimit   string
	gates      []string
	json       string
	plot       string
}

func main() {
	// What the watch of the pods logs when a control plane ends is no news.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "throughput:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	var o options
	var lines []string
	for _, r := range recipes {
		lines = append(lines, fmt.Sprintf("  %-22s%s", r.name, r.description))
	}
	for _, w := range workloads {
		lines = append(lines, fmt.Sprintf("  %-22s%s", w.name, w.description))
	}
	cmd := &cobra.Command{
		Use:   "throughput",
		Short: "Measure the scheduler's CPU time per pod and its pods per second as clusters grow",
		Long: `throughput creates pods on a local control plane, starts a scheduler, and measures until the last pod is bound.
Each run has a new control plane. In a repeat, the contenders run one after the other; each repeat starts with another.

Contenders and workloads:
` + strings.Join(lines, "\n") + `

It needs the binaries of "make build".`,
		Example: `  # Everything, with the figures of every run and the plot
  go run ./hack/bench/throughput --json runs.json --plot growth.svg

  # A quick look at two contenders
  go run ./hack/bench/throughput --nodes 200 --pods 200=200 --contenders stock,berth --repeats 1

  # What the garbage collector costs
  go run ./hack/bench/throughput --nodes 5000 --contenders stock,berth --gogc 400 --memlimit 2GiB

  # A configuration of your own beside the shipped one
  go run ./hack/bench/throughput --nodes 1000 --contenders stock,berth --config my-config.yaml=berth-scheduler`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bench(cmd.Context(), &o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.IntSliceVar(&o.nodes, "nodes", []int{500, 1000, 5000, 10000}, "sizes of the cluster, in nodes of 8 GPUs")
	f.StringToIntVar(&o.pods, "pods", nil,
		"number of pods for a size, as NODES=PODS (default: twice the nodes up to 2,000 pods, then as many as nodes)")
	f.StringSliceVar(&o.workloads, "workloads", workloadNames(), "workloads to measure")
	f.StringSliceVar(&o.contenders, "contenders", contenderNames(), "contenders to measure")
	f.StringArrayVar(&o.configs, "config", nil,
		"FILE=PROFILE: a further contender, a profile of a scheduler configuration; may be repeated")
	f.IntVar(&o.repeats, "repeats", 3, "number of runs of each contender, 1 and up")
	f.DurationVar(&o.runTimeout, "run-timeout", 30*time.Minute, "how long a run may take")
	f.StringVar(&o.gogc, "gogc", "", "GOGC of the scheduler (default: Go's)")
	f.StringVar(&o.memlimit, "memlimit", "", "GOMEMLIMIT of the scheduler, such as 2GiB (default: none)")
	f.StringSliceVar(&o.gates, "feature-gates", nil, "feature gates of the scheduler, as Name=true,…")
	f.StringVar(&o.json, "json", "", "write the figures of every run as JSON to this file")
	f.StringVar(&o.plot, "plot", "", "write the growth of CPU time per pod with the number of nodes as SVG to this file")
	return cmd
}

// bench measures everything, and prints what there is even if a run fails.
func bench(ctx context.Context, o *options, out, progress io.Writer) error {
	trials, err := o.trials()
	if err != nil {
		return err
	}
	session, err := rig.Begin()
	if err != nil {
		return err
	}
	all := results{SchedulerEnv: o.schedulerEnv(), FeatureGates: o.gates}
	var failed error
	began := time.Now()
	for i, t := range trials {
		what := fmt.Sprintf("%d nodes, %s, %s, repeat %d", t.nodes, t.workload.name, t.contender.name, t.repeat)
		fmt.Fprintf(progress, "%s  run %d of %d: %s\n", time.Since(began).Round(time.Second), i+1, len(trials), what)
		limited, cancel := context.WithTimeoutCause(ctx, o.runTimeout,
			fmt.Errorf("the run took longer than %s (--run-timeout)", o.runTimeout))
		r, err := measure(limited, t, all.SchedulerEnv, all.FeatureGates)
		cancel()
		if err != nil {
			failed = fmt.Errorf("%s: %w", what, err)
			break
		}
		fmt.Fprintf(progress, "    %.2f ms CPU per pod, %.0f pods/s, %.2f cores busy with other work\n",
			r.CPUMillisPerPod, r.PodsPerSecond, r.OtherCores)
		if r.FailedAttempts > 0 {
			fmt.Fprintf(progress, "    warning: %.0f attempts to place a pod failed: this run did more work than others\n",
				r.FailedAttempts)
		}
		all.Runs = append(all.Runs, r)
	}
	if len(all.Runs) == 0 {
		return failed
	}
	if err := o.report(out, all.Runs); err != nil {
		return errors.Join(err, failed)
	}
	return errors.Join(session.End(out, o.json, all), failed)
}

// report prints the tables, and draws the plot if there is a file for it.
func (o *options) report(out io.Writer, runs []run) error {
	if o.plot != "" {
		if err := os.WriteFile(o.plot, []byte(growthPlot(runs)), 0o600); err != nil {
			return fmt.Errorf("writing the plot: %w", err)
		}
	}
	if err := writeTables(out, runs); err != nil {
		return err
	}
	return writeGrowth(out, runs)
}

// memlimitForm is what Go accepts as GOMEMLIMIT; it ends a process that it gives another one.
var memlimitForm = regexp.MustCompile(`^([0-9]+([KMGT]i)?B|off)$`)

// validate checks the flags that are not checked where they are used.
func (o *options) validate() error {
	if o.repeats < 1 {
		return fmt.Errorf("--repeats: %d is not allowed; want 1 or more", o.repeats)
	}
	if percent, err := strconv.Atoi(o.gogc); o.gogc != "" && o.gogc != "off" && (err != nil || percent < 1) {
		return fmt.Errorf("--gogc: %q is not allowed; want a whole number of percent from 1, or off", o.gogc)
	}
	if o.memlimit != "" && !memlimitForm.MatchString(o.memlimit) {
		return fmt.Errorf("--memlimit: %q is not allowed; want a size such as 512MiB or 2GiB, or off", o.memlimit)
	}
	for _, n := range o.nodes {
		if n < minNodes || n > 20_000 {
			return fmt.Errorf("--nodes: %d is not allowed; want %d to 20,000", n, minNodes)
		}
	}
	for _, nodes := range slices.Sorted(maps.Keys(o.pods)) {
		if !slices.ContainsFunc(o.nodes, func(n int) bool { return strconv.Itoa(n) == nodes }) {
			return fmt.Errorf("--pods: %s is not among the sizes of --nodes", nodes)
		}
	}
	return nil
}

// trials lists the runs in the order in which they are made.
func (o *options) trials() ([]trial, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	contenders, err := makeContenders(o.contenders, o.configs)
	if err != nil {
		return nil, err
	}
	if len(contenders) == 0 {
		return nil, errors.New("--contenders: name one, or a file with --config")
	}
	var list []trial
	for _, nodes := range o.nodes {
		for _, name := range o.workloads {
			i := slices.IndexFunc(workloads, func(w workload) bool { return w.name == name })
			if i < 0 {
				return nil, fmt.Errorf("--workloads: %q is unknown; want some of %s", name, strings.Join(workloadNames(), ", "))
			}
			pods, err := o.podsFor(nodes, &workloads[i])
			if err != nil {
				return nil, err
			}
			for repeat := range o.repeats {
				for _, c := range inTurn(contenders, repeat) {
					list = append(list, trial{nodes, pods, repeat + 1, &workloads[i], &c})
				}
			}
		}
	}
	return list, nil
}

// podsFor is how many pods a size is given. A number that does not fit is refused if it was asked for.
func (o *options) podsFor(nodes int, w *workload) (int, error) {
	capacity := w.capacity(nodes)
	asked, ok := o.pods[strconv.Itoa(nodes)]
	if !ok {
		return min(defaultPods(nodes), capacity), nil
	}
	if asked < 2 || asked > capacity {
		return 0, fmt.Errorf("--pods: %d pods of workload %s at %d nodes are not allowed; want 2 to %d",
			asked, w.name, nodes, capacity)
	}
	return asked, nil
}

// schedulerEnv is what is added to the environment of the schedulers.
func (o *options) schedulerEnv() []string {
	var env []string
	if o.gogc != "" {
		env = append(env, "GOGC="+o.gogc)
	}
	if o.memlimit != "" {
		env = append(env, "GOMEMLIMIT="+o.memlimit)
	}
	return env
}
