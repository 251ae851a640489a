// Command share measures, by the scheduler's own metrics, which part of the scheduling algorithm's time each plugin of
// the shipped gpu-aware-scheduler profile takes, with identical pods and with pods no two of which are alike.
//
// The scheduler times plugins in a tenth of its cycles, and Filter and Score of several nodes at once. The part of a plugin
// is therefore its part of the work at an extension point (evaluations × mean duration), times the part of that
// extension point's wall time in the algorithm's.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/hack/bench/rig"
)

var (
	nodes   = flag.Int("nodes", 5000, "number of nodes, of 8 GPUs each, a third of them of each of three models")
	pods    = flag.Int("pods", 1000, "number of pods of each run")
	config  = flag.String("config", "manifests/base/scheduler-config.yaml", "scheduler configuration")
	profile = flag.String("profile", "gpu-aware-scheduler", "profile to measure")
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
	if err := bed.CreatePod(ctx, rig.Pod(namespace, "warm", *profile, requests(0))); err != nil {
		return err
	}
	if err := bed.AwaitBound(ctx, namespace, 1); err != nil {
		return err
	}
	before, err := scheduler.Metrics(ctx)
	if err != nil {
		return err
	}
	err = rig.CreateAll(*pods, func(i int) error {
		return bed.CreatePod(ctx, rig.Pod(namespace, fmt.Sprintf("p%d", i), *profile, requests(i)))
	})
	if err != nil {
		return err
	}
	if err := bed.AwaitBound(ctx, namespace, *pods+1); err != nil {
		return err
	}
	after, err := scheduler.Metrics(ctx)
	if err != nil {
		return err
	}
	if err := bed.Empty(ctx, namespace); err != nil {
		return err
	}
	print(name, account(read(after).minus(read(before))))
	return nil
}

// timed is a sum of durations and how many there were.
type timed struct{ seconds, count float64 }

// work is one plugin at one extension point.
type work struct{ plugin, point string }

// gauges are the metrics that the account is made from.
type gauges struct {
	algorithm    timed
	points       map[string]timed
	sampled      map[work]timed
	evaluations  map[work]float64
	hits, misses float64
}

func read(families map[string]*dto.MetricFamily) gauges {
	g := gauges{points: map[string]timed{}, sampled: map[work]timed{}, evaluations: map[work]float64{}}
	each := func(name string, see func(labels map[string]string, m *dto.Metric)) {
		for _, m := range families[name].GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			see(labels, m)
		}
	}
	add := func(t timed, m *dto.Metric) timed {
		return timed{t.seconds + m.GetHistogram().GetSampleSum(), t.count + float64(m.GetHistogram().GetSampleCount())}
	}
	each("scheduler_scheduling_algorithm_duration_seconds", func(_ map[string]string, m *dto.Metric) { g.algorithm = add(g.algorithm, m) })
	each("scheduler_framework_extension_point_duration_seconds", func(l map[string]string, m *dto.Metric) {
		g.points[l["extension_point"]] = add(g.points[l["extension_point"]], m)
	})
	each("scheduler_plugin_execution_duration_seconds", func(l map[string]string, m *dto.Metric) {
		w := work{l["plugin"], l["extension_point"]}
		g.sampled[w] = add(g.sampled[w], m)
	})
	each("scheduler_plugin_evaluation_total", func(l map[string]string, m *dto.Metric) {
		g.evaluations[work{l["plugin"], l["extension_point"]}] += m.GetCounter().GetValue()
	})
	each("berth_gpu_packing_cache_hits_total", func(_ map[string]string, m *dto.Metric) { g.hits += m.GetCounter().GetValue() })
	each("berth_gpu_packing_cache_misses_total", func(_ map[string]string, m *dto.Metric) { g.misses += m.GetCounter().GetValue() })
	return g
}

func (g gauges) minus(before gauges) gauges {
	less := func(a, b timed) timed { return timed{a.seconds - b.seconds, a.count - b.count} }
	d := gauges{
		algorithm: less(g.algorithm, before.algorithm), points: map[string]timed{}, sampled: map[work]timed{},
		evaluations: map[work]float64{}, hits: g.hits - before.hits, misses: g.misses - before.misses,
	}
	for k, v := range g.points {
		d.points[k] = less(v, before.points[k])
	}
	for k, v := range g.sampled {
		d.sampled[k] = less(v, before.sampled[k])
	}
	for k, v := range g.evaluations {
		d.evaluations[k] = v - before.evaluations[k]
	}
	return d
}

// line is one plugin's part of the algorithm's time at one extension point, in percent.
type line struct {
	work
	percent, micros float64
}

// result is what a run has shown.
type result struct {
	cycles, millisPerCycle, hitPercent float64
	lines                              []line
}

func account(g gauges) result {
	r := result{cycles: g.algorithm.count, millisPerCycle: 1000 * g.algorithm.seconds / g.algorithm.count, hitPercent: 100 * g.hits / max(1, g.hits+g.misses)}
	total := map[string]float64{}
	seconds := map[work]float64{}
	for w, t := range g.sampled {
		if t.count > 0 {
			seconds[w] = g.evaluations[w] * t.seconds / t.count
			total[w.point] += seconds[w]
		}
	}
	for w, s := range seconds {
		if total[w.point] == 0 {
			continue
		}
		r.lines = append(r.lines, line{
			work: w, percent: 100 * s / total[w.point] * g.points[w.point].seconds / g.algorithm.seconds,
			micros: 1e6 * g.sampled[w].seconds / g.sampled[w].count,
		})
	}
	slices.SortFunc(r.lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(b.percent, a.percent), cmp.Compare(a.plugin, b.plugin), cmp.Compare(a.point, b.point))
	})
	return r
}

func print(name string, r result) {
	_, _ = fmt.Fprintf(os.Stdout, "\n%s, %d nodes: %.0f cycles, %.2f ms of algorithm each, packing values from the cache %.1f%%\n",
		name, *nodes, r.cycles, r.millisPerCycle, r.hitPercent)
	sums := map[string]float64{}
	for _, l := range r.lines {
		sums[l.plugin] += l.percent
		if l.percent >= 0.1 {
			_, _ = fmt.Fprintf(os.Stdout, "  %-32s %-10s %6.1f%% of the algorithm, %8.2f µs a call\n", l.plugin, l.point, l.percent, l.micros)
		}
	}
	for _, plugin := range slices.SortedFunc(maps.Keys(sums), func(a, b string) int { return cmp.Compare(sums[b], sums[a]) }) {
		if sums[plugin] >= 0.1 {
			_, _ = fmt.Fprintf(os.Stdout, "  %-32s %-10s %6.1f%%\n", plugin, "in all", sums[plugin])
		}
	}
}
