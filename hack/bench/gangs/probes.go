package main

import (
	"fmt"
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
	Phase               string  `json:"phase" row:"waits of other pods"`
	MedianMillis        float64 `json:"medianMillis" column:"p50, ms|%.0f|optional"`
	P99Millis           float64 `json:"p99Millis" column:"p99|%.0f|optional"`
	MostMillis          float64 `json:"mostMillis" column:"most|%.0f|optional"`
	Pods                int     `json:"pods" column:"pods|%.0f"`
	Seconds             float64 `json:"seconds" column:"seconds|%.1f"`
	SchedulerCPUSeconds float64 `json:"schedulerCPUSeconds" column:"scheduler\nCPU s|%.1f"`
	// LongestCycleMillis is the bound of the histogram's bucket in which the longest scheduling cycle is.
	LongestCycleMillis float64 `json:"longestCycleMillis" column:"longest cycle\nat most, ms|%.0f|optional"`
	Plans              float64 `json:"plans" column:"plans|%.0f"`
	PlanSeconds        float64 `json:"planSeconds" column:"of\nseconds|%.2f"`
	AllBoundSeconds    float64 `json:"allBoundSeconds,omitempty" column:"all bound\nafter, s|%.1f|optional"`
	EditsPerSecond     float64 `json:"editsPerSecond,omitempty" column:"edits\na second|%.0f|optional"`
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
func startProbes(bed *live.Bed, scheduler *live.Process) *probes {
	bed.Namespace(probeNamespace)
	p := &probes{bed: bed, scheduler: scheduler, created: map[string]time.Time{}}
	bound := bed.Watch(probeNamespace, p.bound)
	go p.run()
	bound.Await(1, scheduler)
	return p
}

// run creates the probes. Most of their CPU is free on any node.
func (p *probes) run() {
	little := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1m")}
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-p.bed.Context().Done():
			return
		case <-tick.C:
		}
		name := fmt.Sprintf("probe-%d", i)
		p.mu.Lock()
		p.created[name] = time.Now()
		p.mu.Unlock()
		if err := rig.Catch(func() { p.bed.CreatePod(live.Pod(probeNamespace, name, profileName, little)) }); err != nil {
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
func (p *probes) phase(name string, do func()) phaseFigures {
	var waits []float64
	use := p.bed.Measure(p.scheduler, func() {
		p.mu.Lock()
		p.waits = nil
		p.mu.Unlock()
		do()
		p.mu.Lock()
		defer p.mu.Unlock()
		rig.Fail(p.err)
		waits = append(waits, p.waits...)
		for _, began := range p.created {
			if time.Since(began) > probeEvery {
				waits = append(waits, millisSince(began))
			}
		}
	})
	plans := use.Histogram("berth_gang_plan_duration_seconds", "")
	return phaseFigures{Phase: name, MedianMillis: rig.Percentile(waits, 50), P99Millis: rig.Percentile(waits, 99),
		MostMillis: rig.Percentile(waits, 100), Pods: len(waits), Seconds: use.Seconds,
		SchedulerCPUSeconds: use.SchedulerCPU.Seconds(),
		LongestCycleMillis:  1000 * use.Histogram(live.AlgorithmSeconds, "").Longest(),
		Plans:               plans.Count, PlanSeconds: plans.Sum}
}
