package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// sample is what the scheduler is like at one moment of a soak, after a garbage collection.
type sample struct {
	// After is the time since the beginning.
	After      string  `json:"after" row:"after"`
	HeapMiB    float64 `json:"heapMiB" column:"heap MiB|%.1f"`
	RSSMiB     float64 `json:"residentMiB" column:"resident MiB|%.1f"`
	Goroutines float64 `json:"goroutines" column:"goroutines|%.0f"`
	// Series are those that the scheduler exports, of Berth's own and of Kubernetes' metrics: labels that grow in
	// number show here.
	Series float64 `json:"series" column:"series|%.0f"`
	// Cached are the pods, assumed pods and nodes in the scheduler's cache, and Pending those in its queue.
	Cached  float64 `json:"cached" column:"cache|%.0f"`
	Pending float64 `json:"pending" column:"queue|%.0f"`
	// MedianWait and P99Wait are, of the pods that were bound since the last sample, the seconds from when they were made.
	MedianWait float64 `json:"medianWaitSeconds" column:"median wait, s|%.3f"`
	P99Wait    float64 `json:"p99WaitSeconds" column:"p99|%.3f"`
	Bound      int     `json:"bound" column:"bound|%.0f"`
}

// gauge is a column of samples that has to stay flat.
type gauge struct {
	name string
	// most is by how much of its mean it may grow over the second half, and slack how much of a growth is nothing.
	most, slack float64
}

var gauges = []gauge{
	{"heap", 0.1, 2}, {"resident memory", 0.1, 4}, {"goroutines", 0.1, 10}, {"series", 0.05, 10}, {"cache", 0.25, 10},
	{"queue", 0.25, 10}, {"median wait", 0.25, 0.2},
}

// gauged are the values of a sample in the order of the gauges.
func (s *sample) gauged() []float64 {
	return []float64{s.HeapMiB, s.RSSMiB, s.Goroutines, s.Series, s.Cached, s.Pending, s.MedianWait}
}

// trend is what became of a gauge in the second half of a soak.
type trend struct {
	Gauge string  `json:"gauge" row:"gauge"`
	Flat  bool    `json:"flat" row:"flat"`
	Mean  float64 `json:"mean" column:"mean|%.2f"`
	// Growth is the slope of a straight line through the samples times their number less one.
	Growth float64 `json:"growth" column:"growth|%+.2f"`
}

// trends judges the second half of the samples, which are as far from each other in time.
func trends(samples []sample) []trend {
	half := samples[len(samples)/2:]
	all := make([]trend, len(gauges))
	for i, g := range gauges {
		values := make([]float64, len(half))
		for j := range half {
			values[j] = half[j].gauged()[i]
		}
		mean, growth := straight(values)
		all[i] = trend{g.name, growth <= g.slack || growth <= g.most*mean, mean, growth}
	}
	return all
}

// straight is the mean of values, and by how much the straight line through them by least squares rises.
func straight(values []float64) (mean, growth float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	above, below := 0.0, 0.0
	for i, v := range values {
		x := float64(i) - (n-1)/2
		above += x * (v - mean)
		below += x * x
	}
	if below == 0 {
		return mean, 0
	}
	return mean, above / below * (n - 1)
}

// soak puts load on the cluster for so long, samples the scheduler, and judges whether it has grown.
func (c *cluster) soak(ctx context.Context, o *options, r *report, out io.Writer) error {
	c.load.set(o.podsPerSecond, false)
	c.excused.Store(false)
	began, sampled := time.Now(), 0
	tick := time.NewTicker(min(time.Minute, o.soak/10))
	defer tick.Stop()
	for time.Since(began) < o.soak {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		now := time.Now()
		s, err := c.sample(ctx)
		if err != nil {
			return err
		}
		bound := c.watched.bound(began)
		s.After = now.Sub(began).Round(time.Second).String()
		s.MedianWait, s.P99Wait, s.Bound = waits(bound[sampled:])
		sampled = len(bound)
		r.Samples = append(r.Samples, s)
		_, _ = fmt.Fprintf(out, "%s %+v\n", now.UTC().Format(time.TimeOnly), s)
		c.surge()
	}
	r.Trends = trends(r.Samples)
	end := round{Disaster: "soak", Seed: o.seed}
	c.finish(ctx, &end, began)
	for _, t := range r.Trends {
		if !t.Flat {
			end.Broken = append(end.Broken,
				fmt.Sprintf("%s grows: by %.2f over the second half, of %.2f", t.Gauge, t.Growth, t.Mean))
		}
	}
	if end.Evicted == 0 {
		end.Broken = append(end.Broken, "no pod was evicted: preemption was not tried")
	}
	r.Rounds = append(r.Rounds, end)
	return ctx.Err()
}

// surge adds a gang of three in four of the whole nodes, for which others have to make way. Without faults, the load
// fits.
func (c *cluster) surge() {
	c.load.add(&job{name: fmt.Sprintf("surge-%d", time.Now().UnixNano()), gang: true, size: c.scale * wholeNodes * 3 / 4,
		gpus: wholeGPUs, milliCPU: 500,
		class: highClass, lifetime: time.Second})
}

// sample asks the scheduler for a garbage collection and reads what it says of itself.
func (c *cluster) sample(ctx context.Context) (sample, error) {
	leader := c.replicas[0]
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if _, err := c.page(ctx, leader, "/debug/pprof/heap?gc=1"); err != nil {
		return sample{}, err
	}
	text, err := c.page(ctx, leader, "/metrics")
	if err != nil {
		return sample{}, err
	}
	return readSample(text)
}

// readSample takes a sample from the metrics of a scheduler.
func readSample(text []byte) (s sample, err error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return s, fmt.Errorf("reading the metrics of the scheduler: %w", err)
	}
	total := func(name string) float64 {
		sum := 0.0
		for _, m := range families[name].GetMetric() {
			sum += m.GetGauge().GetValue()
		}
		return sum
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			s.Series += seriesOf(m)
		}
	}
	const mib = 1 << 20
	s.HeapMiB, s.RSSMiB = total("go_memstats_heap_alloc_bytes")/mib, total("process_resident_memory_bytes")/mib
	s.Goroutines, s.Cached, s.Pending = total("go_goroutines"), total("scheduler_cache_size"),
		total("scheduler_pending_pods")
	if s.HeapMiB == 0 || s.RSSMiB == 0 || s.Goroutines == 0 {
		return s, errors.New("reading the metrics of the scheduler: they do not say how much memory it uses")
	}
	return s, nil
}

// seriesOf is how many series a metric is: one, or those of a histogram's or summary's parts.
func seriesOf(m *dto.Metric) float64 {
	return float64(max(1, len(m.GetHistogram().GetBucket()), len(m.GetSummary().GetQuantile())))
}

// waits are the median and the 99th percentile of how long pods waited, and how many there were.
func waits(bindings []binding) (median, p99 float64, bound int) {
	if len(bindings) == 0 {
		return 0, 0, 0
	}
	waited := make([]float64, 0, len(bindings))
	for _, b := range bindings {
		waited = append(waited, b.waiting.Seconds())
	}
	slices.Sort(waited)
	at := func(q float64) float64 { return waited[int(q*float64(len(waited)-1))] }
	return at(0.5), at(0.99), len(waited)
}
