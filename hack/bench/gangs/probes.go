package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/hack/bench/live"
	"berth.dev/berth/hack/bench/rig"
)

const (
	// probeEvery is how often a pod is created that fits at once.
	probeEvery     = 50 * time.Millisecond
	probeNamespace = "probes"
)

// phaseFigures are how long other pods waited in a phase, and what the scheduler did in it; what was not measured is
// left out.
type phaseFigures struct {
	Phase               string  `json:"phase"`
	MedianMillis        float64 `json:"medianMillis"`
	P99Millis           float64 `json:"p99Millis"`
	MostMillis          float64 `json:"mostMillis"`
	Pods                int     `json:"pods"`
	Seconds             float64 `json:"seconds"`
	SchedulerCPUSeconds float64 `json:"schedulerCPUSeconds"`
	// LongestCycleMillis is the bound of the histogram's bucket in which the longest scheduling cycle is.
	LongestCycleMillis float64 `json:"longestCycleMillis"`
	Plans              float64 `json:"plans"`
	PlanSeconds        float64 `json:"planSeconds"`
	AllBoundSeconds    float64 `json:"allBoundSeconds,omitempty"`
	EditsPerSecond     float64 `json:"editsPerSecond,omitempty"`
}

// measured is NaN for what was not measured.
func measured(v float64) float64 {
	if v == 0 {
		return math.NaN()
	}
	return v
}

var phaseColumns = []rig.Figure[phaseFigures]{
	rig.Column("p50, ms", "%.0f", func(f phaseFigures) float64 { return f.MedianMillis }),
	rig.Column("p99", "%.0f", func(f phaseFigures) float64 { return f.P99Millis }),
	rig.Column("most", "%.0f", func(f phaseFigures) float64 { return f.MostMillis }),
	rig.Column("pods", "%.0f", func(f phaseFigures) float64 { return float64(f.Pods) }),
	rig.Column("seconds", "%.1f", func(f phaseFigures) float64 { return f.Seconds }),
	rig.Column("scheduler\nCPU s", "%.1f", func(f phaseFigures) float64 { return f.SchedulerCPUSeconds }),
	rig.Column("longest cycle\nat most, ms", "%.0f", func(f phaseFigures) float64 { return f.LongestCycleMillis }),
	rig.Column("plans", "%.0f", func(f phaseFigures) float64 { return f.Plans }),
	rig.Column("of\nseconds", "%.2f", func(f phaseFigures) float64 { return f.PlanSeconds }),
	rig.Column("all bound\nafter, s", "%.1f", func(f phaseFigures) float64 { return measured(f.AllBoundSeconds) }),
	rig.Column("edits\na second", "%.0f", func(f phaseFigures) float64 { return measured(f.EditsPerSecond) }),
}

func printPhases(out io.Writer, all []phaseFigures) error {
	return rig.Table(out, []string{"waits of other pods"}, func(f phaseFigures) []string { return []string{f.Phase} },
		phaseColumns, all)
}

// probes are small pods of another namespace that are created at a steady rate and stay where they are bound. They show
// for how long the scheduler keeps others waiting.
type probes struct {
	bed       *live.Bed
	scheduler *live.Process

	mu      sync.Mutex
	created map[string]time.Time
	// waits are milliseconds from before the request that created a probe to when it was seen bound.
	waits []float64
	err   error
}

// startProbes returns when the first probe is bound.
func startProbes(ctx context.Context, bed *live.Bed, scheduler *live.Process) (*probes, error) {
	if err := bed.Namespace(ctx, probeNamespace); err != nil {
		return nil, err
	}
	p := &probes{bed: bed, scheduler: scheduler, created: map[string]time.Time{}}
	bound, err := bed.Watch(ctx, probeNamespace, p.bound)
	if err != nil {
		return nil, err
	}
	go p.run(ctx)
	return p, bound.Await(ctx, 1, scheduler)
}

// run creates the probes. Most of their CPU is free on any node.
func (p *probes) run(ctx context.Context) {
	little := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1m")}
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		name := fmt.Sprintf("probe-%d", i)
		p.mu.Lock()
		p.created[name] = time.Now()
		p.mu.Unlock()
		if err := p.bed.CreatePod(ctx, live.Pod(probeNamespace, name, profileName, little)); err != nil {
			p.mu.Lock()
			p.err = err
			p.mu.Unlock()
			return
		}
	}
}

func (p *probes) bound(pod *v1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if began, waits := p.created[pod.Name]; waits {
		p.waits = append(p.waits, millisSince(began))
		delete(p.created, pod.Name)
	}
}

func millisSince(began time.Time) float64 { return float64(time.Since(began).Microseconds()) / 1000 }

// phase tells how long the probes waited that were bound while do ran, and those that still wait.
func (p *probes) phase(ctx context.Context, name string, do func() error) (phaseFigures, error) {
	var waits []float64
	use, err := p.bed.Measure(ctx, p.scheduler, func() error {
		p.mu.Lock()
		p.waits = nil
		p.mu.Unlock()
		if err := do(); err != nil {
			return err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		waits = append(waits, p.waits...)
		for _, began := range p.created {
			if time.Since(began) > probeEvery {
				waits = append(waits, millisSince(began))
			}
		}
		return p.err
	})
	if err != nil {
		return phaseFigures{}, fmt.Errorf("%s: %w", name, err)
	}
	plans := use.Histogram("berth_gang_plan_duration_seconds", "")
	return phaseFigures{Phase: name, MedianMillis: rig.Percentile(waits, 50), P99Millis: rig.Percentile(waits, 99),
		MostMillis: rig.Percentile(waits, 100), Pods: len(waits), Seconds: use.Seconds,
		SchedulerCPUSeconds: use.SchedulerCPU.Seconds(),
		LongestCycleMillis:  1000 * use.Histogram(live.AlgorithmSeconds, "").Longest(),
		Plans:               plans.Count, PlanSeconds: plans.Sum}, nil
}
