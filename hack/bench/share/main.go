// Command share measures which part of the scheduling algorithm's time each plugin of the shipped gpu-aware-scheduler
// profile takes, with identical pods and with pods that all differ.
//
// How long the algorithm and its extension points take is counted by the scheduler's own metrics in every cycle. Its
// metric of single plugins cannot tell how an extension point's time is parted between them: it keeps a thousand
// durations a second, which Filter alone has used up before a large cluster is scored. That is taken from the CPU
// profile that the scheduler makes of itself in the same time: the samples within the plugin's method of those at the
// extension point.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/pprof/profile"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/hack/bench/live"
	"berth.dev/berth/hack/bench/rig"
)

var (
	nodes  = rig.Count("nodes", 5000, "number of nodes, of 8 GPUs each, a third of them of each of three models")
	length = flag.Duration("time", 20*time.Second,
		"how long pods arrive, as fast as they can be created, in each run")
	config      = flag.String("config", "manifests/base/scheduler-config.yaml", "scheduler configuration")
	keep        = flag.String("keep", "", "folder in which to leave the CPU profiles; empty: nowhere")
	profileName = flag.String("profile", "gpu-aware-scheduler", "profile to measure")
)

func main() {
	rig.Main("measures which part of the scheduling algorithm's time each plugin takes.", bench)
}

// result is what one run showed.
type result struct {
	Pods            string  `json:"pods"`
	Nodes           int     `json:"nodes"`
	Arrived         int     `json:"arrived"`
	Cycles          float64 `json:"cycles"`
	MillisPerCycle  float64 `json:"millisPerCycle"`
	CacheHitPercent float64 `json:"cacheHitPercent"`
	// Points is the percent of the algorithm's time by extension point, Parts that of single plugins at each.
	Points map[string]float64 `json:"points"`
	Parts  []live.Part        `json:"parts"`
}

// streams are the pods that arrive.
var streams = []struct {
	name, namespace string
	requests        func(i int) v1.ResourceList
}{
	{"identical pods of one GPU", "identical", func(int) v1.ResourceList { return live.GPUs(1) }},
	{"pods of 1 to 8 GPUs, no two alike", "distinct", func(i int) v1.ResourceList {
		requests := live.GPUs(int64(1 + i%8))
		requests[v1.ResourceCPU] = *resource.NewMilliQuantity(int64(1000+i), resource.DecimalSI)
		return requests
	}},
}

func bench(ctx context.Context, out io.Writer) (any, error) {
	text, err := os.ReadFile(*config)
	if err != nil {
		return nil, fmt.Errorf("reading the scheduler's configuration: %w", err)
	}
	contender := live.Contender{Profile: *profileName, Config: text}
	var results []result
	err = live.On(ctx, live.ThreeModels(*nodes), func(bed *live.Bed) {
		for _, s := range streams {
			pod := func(i int) *v1.Pod {
				return live.Pod(s.namespace, fmt.Sprintf("p%d", i), *profileName, s.requests(i))
			}
			scheduler, _ := bed.Ready(contender, pod(0))
			r := result{Pods: s.name, Nodes: *nodes, Points: map[string]float64{}}
			var samples *profile.Profile
			use := bed.Measure(scheduler, func() {
				r.Arrived, samples = arrive(scheduler, func(i int) { bed.CreatePod(pod(i)) })
			})
			scheduler.Stop()
			if *keep != "" {
				save(filepath.Join(*keep, s.namespace+".pprof"), samples)
			}
			r.print(out, use.Algorithm(), samples)
			results = append(results, r)
			bed.Empty(s.namespace)
		}
	})
	return results, err
}

// arrive creates pods while the scheduler is profiled, and returns how many.
func arrive(scheduler *live.Process, create func(i int)) (pods int, samples *profile.Profile) {
	var created atomic.Int64
	done := make(chan struct{})
	creator := func() {
		for {
			select {
			case <-done:
				return
			default:
				create(int(created.Add(1)))
			}
		}
	}
	rig.Together(append(slices.Repeat([]func(){creator}, 8), func() {
		defer close(done)
		samples = scheduler.Profile(*length)
	})...)
	return int(created.Load()), samples
}

func save(path string, samples *profile.Profile) {
	file, err := os.Create(path)
	rig.Check(err, "keeping a CPU profile")
	rig.Check(errors.Join(samples.Write(file), file.Close()), "writing %s", path)
}

// print completes a result by what the algorithm did, and prints it but for parts that are too small to matter.
func (r *result) print(out io.Writer, a live.Algorithm, samples *profile.Profile) {
	r.Cycles, r.MillisPerCycle = a.Cycles, a.MillisPerCycle()
	r.CacheHitPercent = 100 * a.CacheHits / max(1, a.CacheHits+a.CacheMisses)
	_, _ = fmt.Fprintf(out,
		"\n%s, %d nodes: %d pods arrived, %.0f cycles, %.2f ms of algorithm each, packing values from the cache %.1f%%\n",
		r.Pods, r.Nodes, r.Arrived, r.Cycles, r.MillisPerCycle, r.CacheHitPercent)
	parts := a.Parts(samples)
	for _, point := range live.AlgorithmPoints() {
		r.Points[point] = a.Percent(point)
		_, _ = fmt.Fprintf(out, "  %-28s %5.1f%% of the algorithm's time\n", point, a.Percent(point))
		for _, p := range parts {
			if p.Point == point && p.Percent >= 0.1 {
				r.Parts = append(r.Parts, p)
				_, _ = fmt.Fprintf(out, "    %-26s %5.1f%%\n", p.Plugin, p.Percent)
			}
		}
	}
}
