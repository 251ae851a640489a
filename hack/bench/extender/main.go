// Command extender measures one policy in two forms, as a plugin of our scheduler and as an extender of the stock one:
// which part of the scheduling algorithm's time it takes, how many pods are bound in a second, and the CPU time of a
// pod. Every run has scheduler and extender processes of its own. docs/internals/extender.md describes the method.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"berth.dev/berth/hack/bench/rig"
)

// options are the flags.
type options struct {
	nodes      []int
	pods       int
	repeats    int
	contenders []string
	json       string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "extender:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	var o options
	var names, lines []string
	for _, c := range contenders {
		names = append(names, c.name)
		lines = append(lines, fmt.Sprintf("  %-24s%s", c.name, c.description))
	}
	cmd := &cobra.Command{
		Use:   "extender",
		Short: "Compare GPUAware as a plugin with GPUAware as an extender",
		Long: `extender starts a scheduler on a local control plane, creates pods of one GPU as fast as the API server takes them, and
measures until the last pod is bound.

Contenders:
` + strings.Join(lines, "\n") + `

It needs the binaries of "make build".`,
		Example: `  # Everything
  go run ./hack/bench/extender

  # A quick look, with the figures of every run as JSON
  go run ./hack/bench/extender --nodes 200 --pods 200 --contenders stock,plugin,extender --repeats 1 --json runs.json`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(names); err != nil {
				return err
			}
			session, err := rig.Begin()
			if err != nil {
				return err
			}
			runs, err := o.runAll(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if err := table(cmd.OutOrStdout(), runs); err != nil {
				return err
			}
			return session.End(cmd.OutOrStdout(), o.json, runs)
		},
	}
	f := cmd.Flags()
	f.IntSliceVar(&o.nodes, "nodes", []int{1000, 5000}, "sizes of the cluster, nodes of 8 GPUs")
	f.IntVar(&o.pods, "pods", 1000, "pods of each run")
	f.IntVar(&o.repeats, "repeats", 3, "runs of each contender, of which the table shows the median")
	f.StringSliceVar(&o.contenders, "contenders", names, "whom to measure")
	f.StringVar(&o.json, "json", "", "write the figures of every run as JSON to this file")
	return cmd
}

// check refuses flags that cannot be used.
func (o *options) check(known []string) error {
	for _, name := range o.contenders {
		if !slices.Contains(known, name) {
			return fmt.Errorf("--contenders has %q: want some of %s", name, strings.Join(known, ", "))
		}
	}
	for _, n := range o.nodes {
		// Half of the GPUs stay free: a cluster that fills up makes more work for all.
		if n < 10 || o.pods > 4*n {
			return fmt.Errorf("--nodes %d and --pods %d: want at least 10 nodes and at most 4 pods a node", n, o.pods)
		}
	}
	switch {
	case o.pods <= leadIn:
		return fmt.Errorf("--pods is %d: want more than %d, which are not measured", o.pods, leadIn)
	case o.repeats < 1:
		return fmt.Errorf("--repeats is %d: want at least 1", o.repeats)
	}
	return nil
}

// runAll runs the contenders one after the other, and each repeat begins with another.
func (o *options) runAll(ctx context.Context, progress io.Writer) ([]run, error) {
	var runs []run
	for _, nodes := range o.nodes {
		bed, err := rig.Start(ctx, nodesFile(nodes))
		if err != nil {
			return nil, err
		}
		for repeat := range o.repeats {
			for i := range o.contenders {
				c := find(o.contenders[(i+repeat)%len(o.contenders)])
				_, _ = fmt.Fprintf(progress, "%d nodes, %s, repeat %d of %d\n", nodes, c.name, repeat+1, o.repeats)
				r, err := measure(ctx, bed, c, fmt.Sprintf("run-%s-%d", c.name, repeat), o.pods)
				if err != nil {
					_ = bed.Stop()
					return nil, fmt.Errorf("%d nodes, %s: %w", nodes, c.name, err)
				}
				r.Nodes = nodes
				runs = append(runs, r)
			}
		}
		if err := bed.Stop(); err != nil {
			return nil, err
		}
	}
	return withShares(runs), nil
}

// nodesFile is a fleet of three models.
func nodesFile(nodes int) []byte {
	file := []byte("shapes:\n")
	for i, model := range []string{"NVIDIA-A100-SXM4-80GB", "NVIDIA-A10", "Tesla-T4"} {
		file = fmt.Appendf(file,
			"- name: m%d\n  count: %d\n  labels: {nvidia.com/gpu.product: %s, nvidia.com/gpu.count: \"8\"}\n"+
				"  allocatable: {cpu: \"96\", memory: 512Gi, pods: \"110\", nvidia.com/gpu: \"8\"}\n", i, (nodes+2-i)/3, model)
	}
	return file
}

// table shows the median of each figure.
func table(w io.Writer, runs []run) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t,
		"nodes\tcontender\tshare of algorithm\tms of it a pod\tpods/s\tCPU ms a pod\tof it scheduler\tof it "+
			"extender\tother cores\t")
	type key struct {
		nodes     int
		contender string
	}
	var order []key
	groups := map[key][]run{}
	for _, r := range runs {
		k := key{r.Nodes, r.Contender}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], r)
	}
	for _, k := range order {
		median := func(figure func(run) float64) float64 {
			var values []float64
			for _, r := range groups[k] {
				values = append(values, figure(r))
			}
			return rig.SpreadOf(values).Median
		}
		fmt.Fprintf(t, "%d\t%s\t%.1f%%\t%.2f\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t\n", k.nodes, k.contender,
			median(func(r run) float64 { return r.SharePercent }), median(func(r run) float64 { return r.AlgorithmMillis }),
			median(func(r run) float64 { return r.PodsPerSecond }),
			median(func(r run) float64 { return r.SchedulerMillisPerPod + r.ExtenderMillisPerPod }),
			median(func(r run) float64 { return r.SchedulerMillisPerPod }),
			median(func(r run) float64 { return r.ExtenderMillisPerPod }),
			median(func(r run) float64 { return r.OtherCores }))
	}
	return t.Flush()
}

// awaitWithin bounds one run.
const awaitWithin = 10 * time.Minute
