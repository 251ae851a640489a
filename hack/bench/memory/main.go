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
	"flag"
	"fmt"
	"io"
	"math"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/hack/bench/live"
	"berth.dev/berth/hack/bench/rig"
)

// options are the flags.
type options struct {
	nodes, pods, wave, repeats *int
	runTimeout                 *time.Duration
}

func main() {
	o := options{
		nodes:      rig.Count("nodes", 5000, "number of nodes, of 8 GPUs each"),
		pods:       rig.Count("pods", 50_000, "number of pods when all are placed"),
		wave:       rig.Count("wave", 2000, "how many of the pods each scheduler places; the others run before it starts"),
		repeats:    rig.Count("repeats", 3, "number of runs of each scheduler"),
		runTimeout: flag.Duration("run-timeout", 10*time.Minute, "how long a run may take"),
	}
	rig.Main(`compares the memory of the stock scheduler with that of berth-scheduler. It needs the binaries of "make build".

  # 5,000 nodes and 50,000 pods
  go run ./hack/bench/memory --json memory.json

  # A quick look
  go run ./hack/bench/memory --nodes 100 --pods 1000 --wave 100 --repeats 1`, o.bench)
}

// check refuses flags that cannot be used together.
func check(nodes, pods, wave int) error {
	switch {
	case nodes < 10 || nodes > 20_000:
		return fmt.Errorf("--nodes: %d is not allowed; want 10 to 20,000", nodes)
	case wave > 2*nodes:
		return fmt.Errorf("--wave: %d is not allowed; want 1 to twice the nodes (%d)", wave, 2*nodes)
	case pods < wave || pods-wave > maxPerNode*nodes:
		return fmt.Errorf("--pods: %d is not allowed; want the wave and at most %d pods a node besides (%d to %d)", pods,
			maxPerNode, wave, wave+maxPerNode*nodes)
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
	Start live.Memory `json:"start"`
	// Placed is after the scheduler has placed the wave, nil where nothing ran: that run is the base of the others.
	Placed *live.Memory `json:"placed,omitempty"`
	// OtherCores is how many cores were busy on average with what is no part of the benchmark.
	OtherCores float64 `json:"otherCores"`
}

// results are every run, and what all have in common.
type results struct {
	Nodes int   `json:"nodes"`
	Pods  int   `json:"pods"`
	Wave  int   `json:"wave"`
	Runs  []run `json:"runs"`
}

func (o options) bench(ctx context.Context, out io.Writer) (any, error) {
	if err := check(*o.nodes, *o.pods, *o.wave); err != nil {
		return nil, err
	}
	installed, err := live.Installed("berth", "berth-scheduler")
	if err != nil {
		return nil, err
	}
	all := results{Nodes: *o.nodes, Pods: *o.pods, Wave: *o.wave}
	err = live.On(ctx, nodesFile(*o.nodes), func(ctx context.Context, bed *live.Bed) error {
		for _, running := range []int{0, *o.pods - *o.wave} {
			if running > 0 {
				rig.Progress("creating %d pods that run", running)
				if err := bed.Namespace(ctx, standing); err != nil {
					return err
				}
				pod := func(i int) *v1.Pod { return runningPod(i, *o.nodes) }
				if err := bed.CreatePods(ctx, 0, running, pod); err != nil {
					return err
				}
			}
			for repeat, c := range rig.InTurn([]live.Contender{live.Stock(), installed}, *o.repeats) {
				rig.Progress("%s with %d pods, repeat %d", c.Name, running, repeat)
				r, err := o.measure(ctx, bed, c, running, fmt.Sprintf("wave-%s-%d-%d", c.Name, running, repeat))
				if err != nil {
					return fmt.Errorf("%s with %d pods: %w", c.Name, running, err)
				}
				r.Repeat = repeat
				all.Runs = append(all.Runs, r)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, writeTable(out, &all)
}

// measure starts a scheduler, and has it place the wave if there are pods that run.
func (o options) measure(ctx context.Context, bed *live.Bed, c live.Contender, running int,
	namespace string) (_ run, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, *o.runTimeout,
		fmt.Errorf("the run took longer than %s (--run-timeout)", *o.runTimeout))
	defer cancel()
	r := run{Contender: c.Name, RunningPods: running}
	r.OtherCores, err = rig.OtherCores(func() error {
		scheduler, bound, err := bed.Ready(ctx, c, namespace, wavePod(namespace, 0, c.Profile))
		if err != nil {
			return err
		}
		defer scheduler.Stop()
		memory := func() (live.Memory, error) {
			if err := live.Settle(ctx); err != nil {
				return live.Memory{}, err
			}
			return scheduler.Memory(ctx)
		}
		if r.Start, err = memory(); err != nil || running == 0 {
			return err
		}
		pod := func(i int) *v1.Pod { return wavePod(namespace, i, c.Profile) }
		if err := bed.CreatePods(ctx, 1, *o.wave, pod); err != nil {
			return err
		}
		if err := bound.Await(ctx, *o.wave, scheduler); err != nil {
			return err
		}
		placed, err := memory()
		r.Placed = &placed
		return err
	})
	return r, errors.Join(err, bed.Empty(ctx, namespace))
}

// writeTable writes a row for each scheduler: medians, with the least and the most in brackets.
func writeTable(out io.Writer, all *results) error {
	alone := map[string]float64{}
	for _, g := range rig.Groups(all.Runs, contenderOf) {
		alone[g.Key[0]] = rig.SpreadOf(g.Values(before(func(r run) float64 { return r.Start.HeapMiB }))).Median
	}
	perPod := func(r run, heap float64, pods int) float64 { return (heap - alone[r.Contender]) * 1024 / float64(pods) }
	_, _ = fmt.Fprintf(out, "%d nodes, %d pods; each scheduler placed %d of them\n", all.Nodes, all.Pods, all.Wave)
	return rig.Table(out, []string{""}, contenderOf, []rig.Figure[run]{
		rig.Column("nodes only,\nheap MiB", "%.0f", before(func(r run) float64 { return r.Start.HeapMiB })),
		rig.Column("RSS\nMiB", "%.0f", before(func(r run) float64 { return r.Start.ResidentMiB })),
		rig.Column("at start,\nheap MiB", "%.0f", with(func(r run) float64 { return r.Start.HeapMiB })),
		rig.Column("RSS\nMiB", "%.0f", with(func(r run) float64 { return r.Start.ResidentMiB })),
		rig.Column("KiB/pod", "%.2f", with(func(r run) float64 { return perPod(r, r.Start.HeapMiB, r.RunningPods) })),
		rig.Column("wave placed,\nheap MiB", "%.0f", with(func(r run) float64 { return r.Placed.HeapMiB })),
		rig.Column("RSS\nMiB", "%.0f", with(func(r run) float64 { return r.Placed.ResidentMiB })),
		rig.Column("KiB/pod", "%.2f", with(func(r run) float64 { return perPod(r, r.Placed.HeapMiB, all.Pods) })),
		rig.Column("peak RSS\nMiB", "%.0f", with(func(r run) float64 { return r.Placed.PeakResidentMiB })),
		rig.Column("other work,\ncores", "%.2f", with(func(r run) float64 { return r.OtherCores })),
	}, all.Runs)
}

func contenderOf(r run) []string { return []string{r.Contender} }

// before is a figure of the runs before any pod ran, and with of those beside pods that run.
func before(of func(run) float64) func(run) float64 {
	return func(r run) float64 {
		if r.RunningPods > 0 {
			return math.NaN()
		}
		return of(r)
	}
}

func with(of func(run) float64) func(run) float64 {
	return func(r run) float64 {
		if r.RunningPods == 0 {
			return math.NaN()
		}
		return of(r)
	}
}
