// Command share measures which part of the scheduling algorithm's time each plugin of the shipped gpu-aware-scheduler
// profile takes, with identical pods and with pods no two of which are alike.
//
// How long the algorithm and its extension points take is counted by the scheduler's own metrics in every cycle. Its metric
// of single plugins cannot tell how an extension point's time is parted between them: it keeps a thousand durations a
// second, which Filter alone has used up before a large cluster is scored. That is taken from the CPU profile that the
// scheduler makes of itself in the same time: the samples within the plugin's method of those at the extension point.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/pprof/profile"
	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/hack/bench/rig"
)

var (
	nodes       = flag.Int("nodes", 5000, "number of nodes, of 8 GPUs each, a third of them of each of three models")
	length      = flag.Duration("time", 20*time.Second, "how long pods arrive, as fast as they can be created, in each run")
	config      = flag.String("config", "manifests/base/scheduler-config.yaml", "scheduler configuration")
	keep        = flag.String("keep", "", "folder in which to leave the CPU profiles; empty: nowhere")
	profileName = flag.String("profile", "gpu-aware-scheduler", "profile to measure")
)

func main() {
	flag.Parse()
	if err := bench(); err != nil {
		fmt.Fprintln(os.Stderr, "share:", err)
		os.Exit(1)
	}
}

func bench() error {
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
		{"pods of 1 to 8 GPUs, no two alike", "distinct", func(i int) v1.ResourceList { return requests(int64(1+i%8), int64(1000+i)) }},
	} {
		if err := measure(ctx, bed, text, run.name, run.namespace, run.requests); err != nil {
			return fmt.Errorf("%s: %w", run.name, err)
		}
	}
	return nil
}

func nodesFile() []byte {
	file := []byte("shapes:\n")
	for i, model := range []string{"NVIDIA-A100-SXM4-80GB", "NVIDIA-A10", "Tesla-T4"} {
		file = fmt.Appendf(file, "- name: m%d\n  count: %d\n  labels: {nvidia.com/gpu.product: %s, nvidia.com/gpu.count: \"8\"}\n"+
			"  allocatable: {cpu: \"96\", memory: 512Gi, pods: \"110\", nvidia.com/gpu: \"8\"}\n", i, (*nodes+2-i)/3, model)
	}
	return file
}

func requests(gpus, milliCPU int64) v1.ResourceList {
	return v1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI), v1.ResourceCPU: *resource.NewMilliQuantity(milliCPU, resource.DecimalSI)}
}

func measure(ctx context.Context, bed *rig.Rig, config []byte, name, namespace string, requests func(i int) v1.ResourceList) error {
	scheduler, err := bed.StartScheduler(config)
	if err != nil {
		return err
	}
	defer scheduler.Stop()
	if err := bed.Namespace(ctx, namespace); err != nil {
		return err
	}
	// One pod through the whole way: informers are filled and the scheduler schedules.
	if err := bed.CreatePod(ctx, rig.Pod(namespace, "warm", *profileName, requests(0))); err != nil {
		return err
	}
	if err := bed.AwaitBound(ctx, namespace, 1); err != nil {
		return err
	}
	before, err := scheduler.Metrics(ctx)
	if err != nil {
		return err
	}
	profiled, samples, err := arrive(ctx, scheduler, func(i int) error {
		return bed.CreatePod(ctx, rig.Pod(namespace, fmt.Sprintf("p%d", i), *profileName, requests(i)))
	})
	if err != nil {
		return err
	}
	after, err := scheduler.Metrics(ctx)
	if err != nil {
		return err
	}
	if *keep != "" {
		if err := save(filepath.Join(*keep, namespace+".pprof"), samples); err != nil {
			return err
		}
	}
	tell(name, profiled, account(read(after).minus(read(before)), samples))
	return bed.Empty(ctx, namespace)
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

// gauges are the metrics that the account is made from: seconds and numbers of the algorithm and of extension points.
type gauges struct {
	seconds, cycles float64
	points          map[string]float64
	hits, misses    float64
}

func read(families map[string]*dto.MetricFamily) gauges {
	g := gauges{points: map[string]float64{}}
	for _, m := range families["scheduler_scheduling_algorithm_duration_seconds"].GetMetric() {
		g.seconds += m.GetHistogram().GetSampleSum()
		g.cycles += float64(m.GetHistogram().GetSampleCount())
	}
	for _, m := range families["scheduler_framework_extension_point_duration_seconds"].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "extension_point" {
				g.points[l.GetValue()] += m.GetHistogram().GetSampleSum()
			}
		}
	}
	for _, m := range families["scheduler_batch_rescore_duration_seconds"].GetMetric() {
		g.points[batching] += m.GetHistogram().GetSampleSum()
	}
	for _, m := range families["berth_gpu_packing_cache_hits_total"].GetMetric() {
		g.hits += m.GetCounter().GetValue()
	}
	for _, m := range families["berth_gpu_packing_cache_misses_total"].GetMetric() {
		g.misses += m.GetCounter().GetValue()
	}
	return g
}

func (g gauges) minus(before gauges) gauges {
	g.seconds -= before.seconds
	g.cycles -= before.cycles
	g.hits -= before.hits
	g.misses -= before.misses
	for point := range g.points {
		g.points[point] -= before.points[point]
	}
	return g
}

// points are the extension points of the algorithm, and the frame within which each of their calls is.
var points = []struct{ name, frame string }{
	{"PreFilter", ").RunPreFilterPlugins"},
	{"Filter", ").RunFilterPlugins"},
	{"PreScore", ").RunPreScorePlugins"},
	{"Score", ").RunScorePlugins"},
	{batching, ").rescoreHintedNode"},
}

// batching is not an extension point: of a run of identical pods only the node of the last is scored again, and all are
// normalized.
const batching = "batch rescoring"

// line is one plugin's part of the algorithm's time at one extension point.
type line struct {
	plugin, point string
	percent       float64
}

// result is what a run has shown.
type result struct {
	cycles, millisPerCycle, hitPercent float64
	points                             map[string]float64
	lines                              []line
}

func account(g gauges, samples *profile.Profile) result {
	r := result{cycles: g.cycles, millisPerCycle: 1000 * g.seconds / g.cycles, hitPercent: 100 * g.hits / max(1, g.hits+g.misses), points: map[string]float64{}}
	for _, p := range points {
		r.points[p.name] = 100 * g.points[p.name] / g.seconds
		total, plugins := within(samples, p.frame)
		if total == 0 {
			continue
		}
		for plugin, n := range plugins {
			r.lines = append(r.lines, line{plugin, p.name, r.points[p.name] * float64(n) / float64(total)})
		}
	}
	slices.SortFunc(r.lines, func(a, b line) int { return cmp.Or(cmp.Compare(b.percent, a.percent), cmp.Compare(a.plugin, b.plugin)) })
	return r
}

// pluginMethod finds the package of a plugin in the name of its method.
var pluginMethod = regexp.MustCompile(`/plugins/([a-z]+)\.\(\*[A-Za-z]+\)\.(PreFilter|Filter|PreScore|Score|NormalizeScore)$`)

// within counts the CPU time of samples within the frame, in all and in each plugin's method.
func within(samples *profile.Profile, frame string) (total int64, plugins map[string]int64) {
	plugins = map[string]int64{}
	for _, s := range samples.Sample {
		plugin, inside := "", false
		// A stack begins with its innermost frame.
		for _, location := range s.Location {
			for _, l := range location.Line {
				if m := pluginMethod.FindStringSubmatch(l.Function.Name); m != nil {
					plugin = m[1]
				}
				inside = inside || strings.Contains(l.Function.Name, frame)
			}
		}
		if !inside {
			continue
		}
		cpu := s.Value[len(s.Value)-1]
		total += cpu
		if plugin != "" {
			plugins[plugin] += cpu
		}
	}
	return total, plugins
}

func tell(name string, created int, r result) {
	_, _ = fmt.Fprintf(os.Stdout, "\n%s, %d nodes: %d pods arrived, %.0f cycles, %.2f ms of algorithm each, packing values from the cache %.1f%%\n",
		name, *nodes, created, r.cycles, r.millisPerCycle, r.hitPercent)
	for _, p := range points {
		_, _ = fmt.Fprintf(os.Stdout, "  %-28s %5.1f%% of the algorithm's time\n", p.name, r.points[p.name])
		for _, l := range r.lines {
			if l.point == p.name && l.percent >= 0.1 {
				_, _ = fmt.Fprintf(os.Stdout, "    %-26s %5.1f%%\n", l.plugin, l.percent)
			}
		}
	}
}
