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
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/google/pprof/profile"
	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/hack/bench/rig"
)

var (
	nodes  = flag.Int("nodes", 5000, "number of nodes, of 8 GPUs each, a third of them of each of three models")
	length = flag.Duration("time", 20*time.Second,
		"how long pods arrive, as fast as they can be created, in each run")
	config      = flag.String("config", "manifests/base/scheduler-config.yaml", "scheduler configuration")
	keep        = flag.String("keep", "", "folder in which to leave the CPU profiles; empty: nowhere")
	profileName = flag.String("profile", "gpu-aware-scheduler", "profile to measure")
	file        = flag.String("json", "", "write the figures as JSON to this file")
)

func main() {
	flag.Parse()
	if err := bench(); err != nil {
		fmt.Fprintln(os.Stderr, "share:", err)
		os.Exit(1)
	}
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
	Parts  []part             `json:"parts"`
}

// part is one plugin's percent of the algorithm's time at one extension point.
type part struct {
	Plugin  string  `json:"plugin"`
	Point   string  `json:"point"`
	Percent float64 `json:"percent"`
}

func bench() error {
	session, err := rig.Begin()
	if err != nil {
		return err
	}
	var results []result
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	text, err := os.ReadFile(*config)
	if err != nil {
		return fmt.Errorf("reading the scheduler's configuration: %w", err)
	}
	bed, err := rig.Start(ctx, nodesFile())
	if err != nil {
		return err
	}
	defer func() { _ = bed.Stop() }()
	for _, run := range []struct {
		name, namespace string
		requests        func(i int) v1.ResourceList
	}{
		{"identical pods of one GPU", "identical", func(int) v1.ResourceList { return requests(1, 1000) }},
		{"pods of 1 to 8 GPUs, no two alike", "distinct",
			func(i int) v1.ResourceList { return requests(int64(1+i%8), int64(1000+i)) }},
	} {
		r, err := measure(ctx, bed, text, run.name, run.namespace, run.requests)
		if err != nil {
			return fmt.Errorf("%s: %w", run.name, err)
		}
		results = append(results, r)
	}
	return session.End(os.Stdout, *file, results)
}

func nodesFile() []byte {
	file := []byte("shapes:\n")
	for i, model := range []string{"NVIDIA-A100-SXM4-80GB", "NVIDIA-A10", "Tesla-T4"} {
		file = fmt.Appendf(file,
			"- name: m%d\n  count: %d\n  labels: {nvidia.com/gpu.product: %s, nvidia.com/gpu.count: \"8\"}\n"+
				"  allocatable: {cpu: \"96\", memory: 512Gi, pods: \"110\", nvidia.com/gpu: \"8\"}\n", i, (*nodes+2-i)/3, model)
	}
	return file
}

func requests(gpus, milliCPU int64) v1.ResourceList {
	return v1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI),
		v1.ResourceCPU: *resource.NewMilliQuantity(milliCPU, resource.DecimalSI)}
}

func measure(ctx context.Context, bed *rig.Rig, config []byte, name, namespace string,
	requests func(i int) v1.ResourceList) (result, error) {
	scheduler, err := bed.StartScheduler(config)
	if err != nil {
		return result{}, err
	}
	defer scheduler.Stop()
	if err := bed.Namespace(ctx, namespace); err != nil {
		return result{}, err
	}
	// One pod through the whole way: informers are filled and the scheduler schedules.
	if err := bed.CreatePod(ctx, rig.Pod(namespace, "warm", *profileName, requests(0))); err != nil {
		return result{}, err
	}
	if err := bed.AwaitBound(ctx, namespace, 1); err != nil {
		return result{}, err
	}
	before, err := scheduler.Metrics(ctx)
	if err != nil {
		return result{}, err
	}
	profiled, samples, err := arrive(ctx, scheduler, func(i int) error {
		return bed.CreatePod(ctx, rig.Pod(namespace, fmt.Sprintf("p%d", i), *profileName, requests(i)))
	})
	if err != nil {
		return result{}, err
	}
	after, err := scheduler.Metrics(ctx)
	if err != nil {
		return result{}, err
	}
	if *keep != "" {
		if err := save(filepath.Join(*keep, namespace+".pprof"), samples); err != nil {
			return result{}, err
		}
	}
	return tell(name, profiled, rig.ReadAlgorithm(after).Minus(rig.ReadAlgorithm(before)), samples),
		bed.Empty(ctx, namespace)
}

// arrive creates pods while the scheduler is profiled, and returns how many.
func arrive(ctx context.Context, scheduler *rig.Scheduler, create func(i int) error) (int, *profile.Profile, error) {
	var (
		samples *profile.Profile
		failed  error
		created atomic.Int64
		done    = make(chan struct{})
	)
	go func() {
		defer close(done)
		samples, failed = scheduler.Profile(ctx, *length)
	}()
	var all errgroup.Group
	for range 8 {
		all.Go(func() error {
			for {
				select {
				case <-done:
					return failed
				default:
				}
				if err := create(int(created.Add(1))); err != nil {
					return err
				}
			}
		})
	}
	err := all.Wait()
	<-done
	return int(created.Load()), samples, errors.Join(err, failed)
}

func save(path string, samples *profile.Profile) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("keeping a CPU profile: %w", err)
	}
	if err := errors.Join(samples.Write(file), file.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// tell prints what a run showed, but for parts that are too small to matter.
func tell(name string, created int, a rig.Algorithm, samples *profile.Profile) result {
	r := result{Pods: name, Nodes: *nodes, Arrived: created, Cycles: a.Cycles, MillisPerCycle: a.MillisPerCycle(),
		CacheHitPercent: 100 * a.CacheHits / max(1, a.CacheHits+a.CacheMisses), Points: map[string]float64{}}
	_, _ = fmt.Fprintf(os.Stdout,
		"\n%s, %d nodes: %d pods arrived, %.0f cycles, %.2f ms of algorithm each, packing values from the cache %.1f%%\n",
		name, r.Nodes, created, r.Cycles, r.MillisPerCycle, r.CacheHitPercent)
	parts := a.Parts(samples)
	for _, point := range rig.AlgorithmPoints() {
		r.Points[point] = a.Percent(point)
		_, _ = fmt.Fprintf(os.Stdout, "  %-28s %5.1f%% of the algorithm's time\n", point, a.Percent(point))
		for _, l := range parts {
			if l.Point == point && l.Percent >= 0.1 {
				r.Parts = append(r.Parts, part{l.Plugin, point, l.Percent})
				_, _ = fmt.Fprintf(os.Stdout, "    %-26s %5.1f%%\n", l.Plugin, l.Percent)
			}
		}
	}
	return r
}
