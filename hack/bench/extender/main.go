// Command extender measures one policy in two forms, as a plugin of our scheduler and as an extender of the stock one:
// which part of the scheduling algorithm's time it takes, how many pods are bound in a second, and the CPU time of a
// pod. Every run has scheduler and extender processes of its own. docs/internals/extender.md describes the method.
package main

import (
	"context"
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
	repeats = rig.Count("repeats", 3, "runs of each contender; the table shows their median")
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
	Nodes     int    `json:"nodes" row:"nodes"`
	Contender string `json:"contender" row:"contender"`
	Pods      int    `json:"pods"`
	// SharePercent is which part of the algorithm's time the policy takes: GPUAware's part of the extension points'
	// time, by the scheduler's CPU profile, and what the algorithm does outside its extension points beyond what stock
	// does there. That is the calls of an extender with all that the scheduler does for them, or the ranking of
	// candidates.
	SharePercent          float64 `json:"sharePercent" column:"share of\nalgorithm|%.1f%%"`
	AlgorithmMillis       float64 `json:"algorithmMillis" column:"ms of it\na pod|%.2f"`
	PodsPerSecond         float64 `json:"podsPerSecond" column:"pods/s|%.0f"`
	CPUMillisPerPod       float64 `json:"cpuMillisPerPod" column:"CPU ms\na pod|%.2f"`
	SchedulerMillisPerPod float64 `json:"schedulerMillisPerPod" column:"of it\nscheduler|%.2f"`
	ExtenderMillisPerPod  float64 `json:"extenderMillisPerPod" column:"of it\nextender|%.2f"`
	// OutsideMillis is the algorithm's time in a cycle outside its extension points.
	OutsideMillis float64 `json:"outsideMillis"`
	// OtherCores is how many cores were busy on average with what is no part of the benchmark.
	OtherCores float64 `json:"otherCores" column:"other\ncores|%.2f"`
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
	var runs []run
	for _, nodes := range *sizes {
		// Half of the GPUs stay free: a cluster that fills up makes more work for all.
		if nodes < 10 || *pods > 4*nodes || *pods <= leadIn {
			return nil, fmt.Errorf("--nodes %d and --pods %d: want at least 10 nodes, at most 4 pods a node, and more than %d "+
				"pods, which are not measured", nodes, *pods, leadIn)
		}
	}
	for _, nodes := range *sizes {
		if err := live.On(ctx, live.ThreeModels(nodes), func(bed *live.Bed) {
			for repeat, c := range rig.InTurn(*chosen, *repeats) {
				rig.Progress("%d nodes, %s, repeat %d of %d", nodes, c.name, repeat, *repeats)
				rig.Check(bed.Within(runTimeout, func(bed *live.Bed) {
					r := c.measure(bed, fmt.Sprintf("run-%s-%d", c.name, repeat))
					r.Nodes = nodes
					runs = append(runs, r)
				}), "%d nodes, %s", nodes, c.name)
			}
		}); err != nil {
			return nil, err
		}
	}
	addOutside(runs)
	return runs, rig.Table(out, runs)
}

// measure starts the processes, creates the pods and follows them until the last is bound.
func (c contender) measure(bed *live.Bed, namespace string) run {
	bed.Namespace(namespace)
	bound := bed.Watch(namespace)
	address := ""
	var extender *live.Process
	if c.extenderProfile != "" {
		extender = bed.StartExtender([]byte(head + c.extenderProfile))
		defer extender.Stop()
		address = extender.Address
	}
	scheduler := bed.StartScheduler(c.scheduler(address))
	defer scheduler.Stop()
	scheduler.Extender = extender
	place := func(from, to int) {
		bed.CreatePods(from, to, func(i int) *v1.Pod {
			return live.Pod(namespace, fmt.Sprintf("p%d", i), v1.DefaultSchedulerName, live.GPUs(1))
		})
		bound.Await(to, scheduler)
	}
	place(0, leadIn)
	var samples *profile.Profile
	var use *live.Use
	rig.Together(func() { samples = scheduler.Profile(profileFor) },
		func() { use = bed.Measure(scheduler, func() { place(leadIn, *pods) }) })
	bed.Empty(namespace)
	n, algorithm := float64(*pods-leadIn), use.Algorithm()
	r := run{
		Contender: c.name, Pods: *pods, AlgorithmMillis: algorithm.MillisPerCycle(), PodsPerSecond: n / use.Seconds,
		CPUMillisPerPod:       1000 * (use.SchedulerCPU + use.ExtenderCPU).Seconds() / n,
		SchedulerMillisPerPod: 1000 * use.SchedulerCPU.Seconds() / n,
		ExtenderMillisPerPod:  1000 * use.ExtenderCPU.Seconds() / n, OtherCores: use.OtherCores,
	}
	outside := 100.0
	for _, point := range live.AlgorithmPoints() {
		outside -= algorithm.Percent(point)
	}
	r.OutsideMillis = r.AlgorithmMillis * outside / 100
	for _, part := range algorithm.Parts(samples) {
		if part.Plugin == "gpuaware" {
			r.SharePercent += part.Percent
		}
	}
	return r
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
