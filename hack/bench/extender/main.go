// Command extender measures one policy in two forms, as a plugin of our scheduler and as an extender of the stock one:
// which part of the scheduling algorithm's time it takes, how many pods are bound in a second, and the CPU time of a
// pod. Every run has scheduler and extender processes of its own. docs/internals/extender.md describes the method.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/google/pprof/profile"
	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/hack/bench/live"
	"berth.dev/berth/hack/bench/rig"
)

var (
	sizes   = rig.List("nodes", []int{1000, 5000}, "sizes of the cluster, nodes of 8 GPUs", strconv.Atoi)
	pods    = rig.Count("pods", 1000, "pods of each run")
	repeats = rig.Count("repeats", 3, "runs of each contender, of which the table shows the median")
	chosen  = rig.Some("contenders", contenders, "whom to measure")
)

func main() {
	rig.Main(`starts a scheduler on a local control plane, creates pods of one GPU as fast as the API server takes them,
and measures until the last pod is bound. It needs the binaries of "make build".

  # Everything
  go run ./hack/bench/extender

  # A quick look, with the figures of every run as JSON
  go run ./hack/bench/extender --nodes 200 --pods 200 --contenders stock,plugin,extender --repeats 1 --json runs.json`,
		bench)
}

// run is what one run has shown.
type run struct {
	Nodes     int    `json:"nodes"`
	Contender string `json:"contender"`
	Pods      int    `json:"pods"`
	// SharePercent is which part of the algorithm's time the policy takes: GPUAware's part of the extension points'
	// time, by the scheduler's CPU profile, and what the algorithm does outside its extension points beyond what stock
	// does there. That is the calls of an extender with all that the scheduler does for them, or the ranking of
	// candidates.
	SharePercent          float64 `json:"sharePercent"`
	AlgorithmMillis       float64 `json:"algorithmMillis"`
	PodsPerSecond         float64 `json:"podsPerSecond"`
	SchedulerMillisPerPod float64 `json:"schedulerMillisPerPod"`
	ExtenderMillisPerPod  float64 `json:"extenderMillisPerPod"`
	// OutsideMillis is the algorithm's time in a cycle outside its extension points.
	OutsideMillis float64 `json:"outsideMillis"`
	// OtherCores is how many cores were busy on average with what is no part of the benchmark.
	OtherCores float64 `json:"otherCores"`
}

var figures = []rig.Figure[run]{
	rig.Column("share of\nalgorithm", "%.1f%%", func(r run) float64 { return r.SharePercent }),
	rig.Column("ms of it\na pod", "%.2f", func(r run) float64 { return r.AlgorithmMillis }),
	rig.Column("pods/s", "%.0f", func(r run) float64 { return r.PodsPerSecond }),
	rig.Column("CPU ms\na pod", "%.2f", func(r run) float64 { return r.SchedulerMillisPerPod + r.ExtenderMillisPerPod }),
	rig.Column("of it\nscheduler", "%.2f", func(r run) float64 { return r.SchedulerMillisPerPod }),
	rig.Column("of it\nextender", "%.2f", func(r run) float64 { return r.ExtenderMillisPerPod }),
	rig.Column("other\ncores", "%.2f", func(r run) float64 { return r.OtherCores }),
}

const (
	// leadIn is how many pods are bound before the measurement begins: until then the scheduler fills its caches.
	leadIn = 50
	// profileFor is how long the scheduler profiles itself.
	profileFor = 5 * time.Second
	// runTimeout bounds one run.
	runTimeout = 10 * time.Minute
)

func bench(ctx context.Context, out io.Writer) (any, error) {
	for _, n := range *sizes {
		// Half of the GPUs stay free: a cluster that fills up makes more work for all.
		if n < 10 || *pods > 4*n || *pods <= leadIn {
			return nil, fmt.Errorf("--nodes %d and --pods %d: want at least 10 nodes, at most 4 pods a node, and more than %d "+
				"pods, which are not measured", n, *pods, leadIn)
		}
	}
	var runs []run
	for _, nodes := range *sizes {
		if err := live.On(ctx, live.ThreeModels(nodes), func(ctx context.Context, bed *live.Bed) error {
			for repeat, c := range rig.InTurn(*chosen, *repeats) {
				rig.Progress("%d nodes, %s, repeat %d of %d", nodes, c.name, repeat, *repeats)
				r, err := c.measure(ctx, bed, fmt.Sprintf("run-%s-%d", c.name, repeat))
				if err != nil {
					return fmt.Errorf("%d nodes, %s: %w", nodes, c.name, err)
				}
				r.Nodes = nodes
				runs = append(runs, r)
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	addOutside(runs)
	return runs, rig.Table(out, []string{"nodes", "contender"},
		func(r run) []string { return []string{strconv.Itoa(r.Nodes), r.Contender} }, figures, runs)
}

// measure starts the processes, creates the pods and follows them until the last is bound.
func (c contender) measure(ctx context.Context, bed *live.Bed, namespace string) (_ run, err error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	if err := bed.Namespace(ctx, namespace); err != nil {
		return run{}, err
	}
	defer func() { err = errors.Join(err, bed.Empty(context.WithoutCancel(ctx), namespace)) }()
	bound, err := bed.Watch(ctx, namespace)
	if err != nil {
		return run{}, err
	}
	address := ""
	var extender *live.Process
	if c.extenderProfile != "" {
		if extender, err = bed.StartExtender(ctx, []byte(head+c.extenderProfile)); err != nil {
			return run{}, err
		}
		defer extender.Stop()
		address = extender.Address
	}
	scheduler, err := bed.StartScheduler(c.scheduler(address))
	if err != nil {
		return run{}, err
	}
	defer scheduler.Stop()
	scheduler.Extender = extender
	place := func(from, to int) error {
		if err := bed.CreatePods(ctx, from, to, func(i int) *v1.Pod {
			return live.Pod(namespace, fmt.Sprintf("p%d", i), v1.DefaultSchedulerName, live.GPUs(1))
		}); err != nil {
			return err
		}
		return bound.Await(ctx, to, scheduler)
	}
	if err := place(0, leadIn); err != nil {
		return run{}, err
	}
	samples := make(chan *profile.Profile, 1)
	use, err := bed.Measure(ctx, scheduler, func() error {
		go func() {
			taken, _ := scheduler.Profile(ctx, profileFor)
			samples <- taken
		}()
		return place(leadIn, *pods)
	})
	if err != nil {
		return run{}, err
	}
	taken := <-samples
	if taken == nil {
		return run{}, errors.New("the scheduler made no CPU profile")
	}
	n, algorithm := float64(*pods-leadIn), use.Algorithm()
	r := run{
		Contender: c.name, Pods: *pods, AlgorithmMillis: algorithm.MillisPerCycle(), PodsPerSecond: n / use.Seconds,
		SchedulerMillisPerPod: 1000 * use.SchedulerCPU.Seconds() / n,
		ExtenderMillisPerPod:  1000 * use.ExtenderCPU.Seconds() / n, OtherCores: use.OtherCores,
	}
	outside := 100.0
	for _, point := range live.AlgorithmPoints() {
		outside -= algorithm.Percent(point)
	}
	r.OutsideMillis = r.AlgorithmMillis * outside / 100
	for _, part := range algorithm.Parts(taken) {
		if part.Plugin == "gpuaware" {
			r.SharePercent += part.Percent
		}
	}
	return r, nil
}

// addOutside adds to the shares what is outside the extension points, once it is known what stock does there.
func addOutside(runs []run) {
	type sum struct{ millis, runs float64 }
	stock := map[int]sum{}
	for _, r := range runs {
		if r.Contender == "stock" {
			s := stock[r.Nodes]
			stock[r.Nodes] = sum{s.millis + r.OutsideMillis, s.runs + 1}
		}
	}
	for i := range runs {
		if r := &runs[i]; r.Contender != "stock" {
			s := stock[r.Nodes]
			r.SharePercent += 100 * max(0, r.OutsideMillis-s.millis/max(1, s.runs)) / r.AlgorithmMillis
		}
	}
}
