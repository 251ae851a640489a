// Command memory measures how much memory a scheduler holds when it knows many pods: the stock scheduler and the
// installed profile berth-scheduler, one after the other on the same local control plane.
//
// Each scheduler starts with the nodes alone, and again with the pods that run; the difference is what it keeps of a
// pod. Then it places further pods, no two alike, which is what makes caches by kind of pod grow. The heap is read
// after a forced collection.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"berth.dev/berth/hack/bench/rig"
)

// options are the flags.
type options struct {
	nodes, pods, wave, repeats int
	runTimeout                 time.Duration
	json                       string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "memory:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "memory",
		Short: "Measure the scheduler's memory with many nodes and pods",
		Long:  `memory compares the memory of the stock scheduler with that of berth-scheduler. It needs the binaries of "make build".`,
		Example: `  # 5,000 nodes and 50,000 pods
  go run ./hack/bench/memory --json memory.json

  # A quick look
  go run ./hack/bench/memory --nodes 100 --pods 1000 --wave 100 --repeats 1`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return bench(cmd.Context(), &o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.nodes, "nodes", 5000, "number of nodes, of 8 GPUs each")
	f.IntVar(&o.pods, "pods", 50_000, "number of pods when all are placed")
	f.IntVar(&o.wave, "wave", 2000, "how many of the pods each scheduler places; the others run before it starts")
	f.IntVar(&o.repeats, "repeats", 3, "number of runs of each scheduler, 1 and up")
	f.DurationVar(&o.runTimeout, "run-timeout", 10*time.Minute, "how long a run may take")
	f.StringVar(&o.json, "json", "", "write the figures of every run as JSON to this file")
	return cmd
}

// check refuses flags that cannot be used.
func (o *options) check() error {
	switch {
	case o.nodes < 10 || o.nodes > 20_000:
		return fmt.Errorf("--nodes: %d is not allowed; want 10 to 20,000", o.nodes)
	case o.repeats < 1:
		return fmt.Errorf("--repeats: %d is not allowed; want 1 or more", o.repeats)
	case o.wave < 1 || o.wave > 2*o.nodes:
		return fmt.Errorf("--wave: %d is not allowed; want 1 to twice the nodes (%d)", o.wave, 2*o.nodes)
	case o.pods < o.wave || o.pods-o.wave > maxPerNode*o.nodes:
		return fmt.Errorf("--pods: %d is not allowed; want the wave and at most %d pods a node besides (%d to %d)", o.pods,
			maxPerNode, o.wave,
			o.wave+maxPerNode*o.nodes)
	}
	return nil
}

// run is what one run of one scheduler shows.
type run struct {
	Contender string `json:"contender"`
	Repeat    int    `json:"repeat"`
	// RunningPods is how many pods had a node when the scheduler started.
	RunningPods int `json:"runningPods"`
	// Start is after the first pod was placed: all nodes and pods are known then.
	Start usage `json:"start"`
	// Placed is after the scheduler has placed the wave, nil where nothing ran: that run is the base of the others.
	Placed *usage `json:"placed,omitempty"`
	// OtherCores is how many cores were busy on average with what is no part of the benchmark.
	OtherCores float64 `json:"otherCores"`
}

// usage is the memory at one moment.
type usage struct {
	ResidentMiB     float64 `json:"residentMiB"`
	PeakResidentMiB float64 `json:"peakResidentMiB"`
	HeapMiB         float64 `json:"heapMiB"`
}

func usageOf(m rig.Memory) usage {
	mib := func(bytes int64) float64 { return float64(bytes) / (1 << 20) }
	return usage{mib(m.Resident), mib(m.PeakResident), mib(m.Heap)}
}

// results are every run, and what all have in common.
type results struct {
	Nodes int   `json:"nodes"`
	Pods  int   `json:"pods"`
	Wave  int   `json:"wave"`
	Runs  []run `json:"runs"`
}

func bench(ctx context.Context, o *options, out, progress io.Writer) (err error) {
	contenders, err := makeContenders()
	if err != nil {
		return err
	}
	session, err := rig.Begin()
	if err != nil {
		return err
	}
	bed, err := rig.Start(ctx, nodesFile(o.nodes))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bed.Stop()) }()
	all := results{Nodes: o.nodes, Pods: o.pods, Wave: o.wave}
	for _, running := range []int{0, o.pods - o.wave} {
		if running > 0 {
			fmt.Fprintf(progress, "creating %d pods that run\n", running)
			if err := createRunning(ctx, bed, o.nodes, running); err != nil {
				return err
			}
		}
		for repeat := range o.repeats {
			for i := range contenders {
				c := &contenders[(i+repeat)%len(contenders)]
				fmt.Fprintf(progress, "%s with %d pods, repeat %d\n", c.name, running, repeat+1)
				r, err := o.measure(ctx, bed, c, running, fmt.Sprintf("wave-%s-%d-%d", c.name, running, repeat))
				if err != nil {
					return fmt.Errorf("%s with %d pods: %w", c.name, running, err)
				}
				r.Repeat = repeat + 1
				all.Runs = append(all.Runs, r)
			}
		}
	}
	if err := writeTable(out, &all, contenders); err != nil {
		return err
	}
	return session.End(out, o.json, all)
}

// measure starts a scheduler, and has it place the wave if there are pods that run.
func (o *options) measure(ctx context.Context, bed *rig.Rig, c *contender, running int, namespace string) (_ run,
	err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.runTimeout,
		fmt.Errorf("the run took longer than %s (--run-timeout)", o.runTimeout))
	defer cancel()
	if err := bed.Namespace(ctx, namespace); err != nil {
		return run{}, err
	}
	defer func() { err = errors.Join(err, bed.Empty(ctx, namespace)) }()
	before, err := rig.ReadLoad()
	if err != nil {
		return run{}, err
	}
	scheduler, err := bed.StartScheduler(c.config, c.gates...)
	if err != nil {
		return run{}, err
	}
	defer scheduler.Stop()
	// place creates pods from one number to before another, waits until they are bound, and reads the memory.
	place := func(from, to int) (usage, error) {
		if err := rig.CreateAll(to-from,
			func(i int) error { return bed.CreatePod(ctx, wavePod(namespace, from+i, c.profile)) }); err != nil {
			return usage{}, err
		}
		if err := bed.AwaitBound(ctx, namespace, to); err != nil {
			return usage{}, err
		}
		if err := rig.Settle(ctx); err != nil {
			return usage{}, err
		}
		m, err := scheduler.Memory(ctx)
		return usageOf(m), err
	}
	r := run{Contender: c.name, RunningPods: running}
	if r.Start, err = place(0, 1); err != nil {
		return run{}, err
	}
	if running > 0 {
		placed, err := place(1, o.wave)
		if err != nil {
			return run{}, err
		}
		r.Placed = &placed
	}
	after, err := rig.ReadLoad()
	if err != nil {
		return run{}, err
	}
	r.OtherCores = after.OtherCoresSince(before)
	return r, nil
}

// column is a figure of the table.
type column struct {
	title, format string
	of            func(*run) float64
}

// columns are those of runs by the number of pods at the end.
func columns(all *results, base float64) []column {
	perPod := func(heap float64, pods int) float64 { return (heap - base) * 1024 / float64(pods) }
	return []column{
		{"at start,\nheap MiB", "%.0f", func(r *run) float64 { return r.Start.HeapMiB }},
		{"RSS\nMiB", "%.0f", func(r *run) float64 { return r.Start.ResidentMiB }},
		{"KiB/pod", "%.2f", func(r *run) float64 { return perPod(r.Start.HeapMiB, r.RunningPods) }},
		{"wave placed,\nheap MiB", "%.0f", func(r *run) float64 { return r.Placed.HeapMiB }},
		{"RSS\nMiB", "%.0f", func(r *run) float64 { return r.Placed.ResidentMiB }},
		{"KiB/pod", "%.2f", func(r *run) float64 { return perPod(r.Placed.HeapMiB, all.Pods) }},
		{"peak RSS\nMiB", "%.0f", func(r *run) float64 { return r.Placed.PeakResidentMiB }},
		{"other work,\ncores", "%.2f", func(r *run) float64 { return r.OtherCores }},
	}
}

// writeTable writes a row for each scheduler: medians, with the least and the most in brackets.
func writeTable(out io.Writer, all *results, contenders []contender) error {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	header := table.Row{"", "nodes only,\nheap MiB", "RSS\nMiB"}
	for _, c := range columns(all, 0) {
		header = append(header, c.title)
	}
	t.AppendHeader(header)
	var configs []table.ColumnConfig
	for i := 2; i <= len(header); i++ {
		configs = append(configs, table.ColumnConfig{Number: i, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(configs)
	for i := range contenders {
		name := contenders[i].name
		spread := func(withPods bool, figure func(*run) float64) rig.Spread {
			var values []float64
			for i := range all.Runs {
				if r := &all.Runs[i]; r.Contender == name && (r.RunningPods > 0) == withPods {
					values = append(values, figure(r))
				}
			}
			return rig.SpreadOf(values)
		}
		base := spread(false, func(r *run) float64 { return r.Start.HeapMiB })
		row := table.Row{name, base.Text("%.0f"),
			spread(false, func(r *run) float64 { return r.Start.ResidentMiB }).Text("%.0f")}
		for _, c := range columns(all, base.Median) {
			row = append(row, spread(true, c.of).Text(c.format))
		}
		t.AppendRow(row)
	}
	if _, err := fmt.Fprintf(out, "%d nodes, %d pods; each scheduler placed %d of them\n%s\n", all.Nodes, all.Pods,
		all.Wave, t.Render()); err != nil {
		return fmt.Errorf("printing the table: %w", err)
	}
	return nil
}
