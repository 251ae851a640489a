// Command memory measures how much memory a scheduler holds when it knows many pods: the stock scheduler and the
// installed profile berth-scheduler, one after the other on the same local control plane.
//
// Each scheduler starts with the nodes alone, and again with the pods that run; the difference is what it keeps of a
// pod. Then it places further pods, no two alike, which is what makes caches by kind of pod grow. The heap is read
// after a forced collection.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
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
	rig.Main(`compares the memory of the stock scheduler with that of berth-scheduler.
It needs the binaries of "make build".

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
	all := results{Nodes: *o.nodes, Pods: *o.pods, Wave: *o.wave}
	contenders := []live.Contender{live.Stock(), live.Installed("berth", "berth-scheduler")}
	if err := live.On(ctx, nodesFile(*o.nodes), func(bed *live.Bed) {
		for _, running := range []int{0, *o.pods - *o.wave} {
			if running > 0 {
				rig.Progress("creating %d pods that run", running)
				bed.Namespace(standing)
				bed.CreatePods(0, running, func(i int) *v1.Pod { return runningPod(i, *o.nodes) })
			}
			for repeat, c := range rig.InTurn(contenders, *o.repeats) {
				rig.Progress("%s with %d pods, repeat %d", c.Name, running, repeat)
				rig.Check(bed.Within(*o.runTimeout, func(bed *live.Bed) {
					r := run{Contender: c.Name, Repeat: repeat, RunningPods: running}
					r.OtherCores = rig.OtherCores(func() { r.measure(bed, c, *o.wave) })
					all.Runs = append(all.Runs, r)
				}), "%s with %d pods", c.Name, running)
			}
		}
	}); err != nil {
		return nil, err
	}
	return all, writeTable(out, &all)
}

// measure starts a scheduler, and has it place the wave if there are pods that run.
func (r *run) measure(bed *live.Bed, c live.Contender, wave int) {
	namespace := fmt.Sprintf("wave-%s-%d-%d", c.Name, r.RunningPods, r.Repeat)
	pod := func(i int) *v1.Pod { return wavePod(namespace, i, c.Profile) }
	scheduler, bound := bed.Ready(c, pod(0))
	defer scheduler.Stop()
	bed.Settle()
	r.Start = scheduler.Memory()
	if r.RunningPods > 0 {
		bed.CreatePods(1, wave, pod)
		bound.Await(wave, scheduler)
		bed.Settle()
		placed := scheduler.Memory()
		r.Placed = &placed
	}
	bed.Empty(namespace)
}

// row is a run with its figures of memory side by side.
type row struct {
	Contender        string  `row:""`
	AloneHeapMiB     float64 `column:"nodes only,\nheap MiB|%.0f|optional"`
	AloneResidentMiB float64 `column:"RSS\nMiB|%.0f|optional"`
	HeapMiB          float64 `column:"at start,\nheap MiB|%.0f|optional"`
	ResidentMiB      float64 `column:"RSS\nMiB|%.0f|optional"`
	KiBPerPod        float64 `column:"KiB/pod|%.2f|optional"`
	PlacedHeapMiB    float64 `column:"wave placed,\nheap MiB|%.0f|optional"`
	PlacedRSSMiB     float64 `column:"RSS\nMiB|%.0f|optional"`
	PlacedKiBPerPod  float64 `column:"KiB/pod|%.2f|optional"`
	PeakRSSMiB       float64 `column:"peak RSS\nMiB|%.0f|optional"`
	OtherCores       float64 `column:"other work,\ncores|%.2f|optional"`
}

// writeTable writes a row for each scheduler. What a pod takes is what the heap has grown since the runs with the nodes
// alone, by their median.
func writeTable(out io.Writer, all *results) error {
	var rows []row
	for _, runs := range rig.Groups(all.Runs, func(r *run) string { return r.Contender }) {
		var alone []float64
		for _, r := range runs {
			if r.Placed == nil {
				alone = append(alone, r.Start.HeapMiB)
				rows = append(rows, row{Contender: r.Contender, AloneHeapMiB: r.Start.HeapMiB,
					AloneResidentMiB: r.Start.ResidentMiB})
			}
		}
		kibPerPod := func(heapMiB float64, pods int) float64 {
			return (heapMiB - rig.SpreadOf(alone).Median) * 1024 / float64(pods)
		}
		for _, r := range runs {
			if r.Placed != nil {
				rows = append(rows, row{r.Contender, 0, 0, r.Start.HeapMiB, r.Start.ResidentMiB,
					kibPerPod(r.Start.HeapMiB, r.RunningPods), r.Placed.HeapMiB, r.Placed.ResidentMiB,
					kibPerPod(r.Placed.HeapMiB, all.Pods), r.Placed.PeakResidentMiB, r.OtherCores})
			}
		}
	}
	_, _ = fmt.Fprintf(out, "%d nodes, %d pods; each scheduler placed %d of them\n", all.Nodes, all.Pods, all.Wave)
	return rig.Table(out, rows)
}
