package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"berth.dev/berth/hack/bench/rig"
)

const (
	// probeEvery is how often a pod is created that fits at once, and probeFor how long that goes on
	// before the first gang comes.
	probeEvery = 50 * time.Millisecond
	probeFor   = 20 * time.Second
)

// preemptForGangs measures how long pods wait that have nothing to do with it while gangs evict pods: the cluster is
// full of pods of one GPU and low priority, and each gang takes as many whole nodes as it has members.
func preemptForGangs(ctx context.Context, bed *rig.Rig, out io.Writer) (any, error) {
	const namespace = "preempt"
	for name, value := range map[string]int32{"low": 10, "high": 100} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		if _, err := bed.Client.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
			return nil, fmt.Errorf("creating PriorityClass %s: %w", name, err)
		}
	}
	if err := bed.Namespace(ctx, "full"); err != nil {
		return nil, err
	}
	if err := rig.CreateAll(*nodes*8, func(i int) error {
		pod := rig.Pod("full", fmt.Sprintf("p-%d", i), profileName, rig.OneGPU())
		pod.Spec.PriorityClassName, pod.Spec.NodeName = "low", fmt.Sprintf("node-%d", i/8)
		// There is no kubelet that would end it.
		pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](0)
		return bed.CreatePod(ctx, pod)
	}); err != nil {
		return nil, err
	}
	if err := bed.AwaitBound(ctx, "full", *nodes*8); err != nil {
		return nil, err
	}
	scheduler, err := bed.StartScheduler(fmt.Appendf(nil, config, coscheduling, noDefaults), rig.InstalledGates...)
	if err != nil {
		return nil, err
	}
	defer scheduler.Stop()
	if err := bed.Namespace(ctx, namespace); err != nil {
		return nil, err
	}
	probes, err := startProbes(ctx, bed)
	if err != nil {
		return nil, err
	}
	if err := bed.AwaitBound(ctx, probeNamespace, 1); err != nil {
		return nil, err
	}
	calm := probes.during(func() error { return pause(ctx, probeFor) })
	if calm.err != nil {
		return nil, calm.err
	}
	_, _ = fmt.Fprintf(out, "%d nodes with %d pods of low priority; %d gangs of %d whole nodes, one after the other\n"+
		waitHeader,
		*nodes, *nodes*8, *gangs, *size, "waits of other pods, ms", "p50", "p99", "most", "pods")
	var all []waitFigures
	tell := func(f waitFigures) {
		f.print(out)
		all = append(all, f)
	}
	tell(calm.figures("before"))
	eightGPUs := v1.ResourceList{v1.ResourceCPU: resource.MustParse("8"), "nvidia.com/gpu": resource.MustParse("8")}
	for g := range *gangs {
		var took time.Duration
		cycles, err := cycleCounts(ctx, scheduler)
		if err != nil {
			return nil, err
		}
		busy := probes.during(func() error {
			began := time.Now()
			if err := createGang(ctx, bed, namespace, fmt.Sprintf("g%d", g), eightGPUs,
				gangOf{*size, true, "high"}); err != nil {
				return err
			}
			defer func() { took = time.Since(began) }()
			return bed.AwaitBound(ctx, namespace, (g+1)**size)
		})
		if busy.err != nil {
			return nil, busy.err
		}
		after, err := cycleCounts(ctx, scheduler)
		if err != nil {
			return nil, err
		}
		during := busy.figures(fmt.Sprintf("gang %d, bound after %.1f s", g, took.Seconds()))
		during.AllBoundSeconds, during.LongestCycleMillis = took.Seconds(), 1000*longest(cycles, after)
		tell(during)
		_, _ = fmt.Fprintf(out, "  longest scheduling cycle meanwhile: at most %.0f ms\n", during.LongestCycleMillis)
		left, err := bed.Client.CoreV1().Pods("full").List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return nil, fmt.Errorf("counting the pods that are left: %w", err)
		}
		if want := (*nodes - (g+1)**size) * 8; int(ptr.Deref(left.RemainingItemCount, 0))+1 != want {
			return nil, fmt.Errorf("%d pods of low priority are left, want %d", *left.RemainingItemCount+1, want)
		}
		if calm = probes.during(func() error { return pause(ctx, probeFor) }); calm.err != nil {
			return nil, calm.err
		}
		tell(calm.figures("afterwards"))
	}
	return all, nil
}

// cycleCounts returns how many scheduling cycles have taken at most each number of seconds.
func cycleCounts(ctx context.Context, scheduler *rig.Scheduler) (map[float64]uint64, error) {
	families, err := scheduler.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	counts := map[float64]uint64{}
	for _, m := range families["scheduler_scheduling_algorithm_duration_seconds"].GetMetric() {
		for _, b := range m.GetHistogram().GetBucket() {
			counts[b.GetUpperBound()] += b.GetCumulativeCount()
		}
	}
	return counts, nil
}

// longest returns the bound of the widest bucket in which there is a cycle of those between two counts.
func longest(before, after map[float64]uint64) float64 {
	most, all := 0.0, after[math.Inf(1)]-before[math.Inf(1)]
	for _, bound := range slices.Sorted(maps.Keys(after)) {
		most = bound
		if after[bound]-before[bound] == all {
			break
		}
	}
	return most
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

const probeNamespace = "probes"

// probes are small pods that are created at a steady rate and stay where they are bound.
type probes struct {
	mu      sync.Mutex
	created map[string]time.Time
	waits   []time.Duration
	err     error
}

func startProbes(ctx context.Context, bed *rig.Rig) (*probes, error) {
	if err := bed.Namespace(ctx, probeNamespace); err != nil {
		return nil, err
	}
	p := &probes{created: map[string]time.Time{}}
	factory := informers.NewSharedInformerFactoryWithOptions(bed.Client, 0, informers.WithNamespace(probeNamespace))
	bound := func(obj any) {
		if pod, ok := obj.(*v1.Pod); ok && pod.Spec.NodeName != "" {
			p.bound(pod.Name)
		}
	}
	informer := factory.Core().V1().Pods().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: bound,
		UpdateFunc: func(_, pod any) { bound(pod) }}); err != nil {
		return nil, fmt.Errorf("watching the probes: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, fmt.Errorf("watching the probes: %w", ctx.Err())
	}
	go p.run(ctx, bed)
	return p, nil
}

// run creates the probes. Most of their CPU is free on any node.
func (p *probes) run(ctx context.Context, bed *rig.Rig) {
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
		if err := bed.CreatePod(ctx, rig.Pod(probeNamespace, name, profileName, little)); err != nil && ctx.Err() == nil {
			p.mu.Lock()
			p.err = err
			p.mu.Unlock()
			return
		}
	}
}

func (p *probes) bound(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if began, waits := p.created[name]; waits {
		p.waits = append(p.waits, time.Since(began))
		delete(p.created, name)
	}
}

// waits are how long the probes waited in one phase, from before the request that created them to when they were seen
// bound.
type waits struct {
	all []time.Duration
	err error
}

// during returns the waits of the probes that were bound while do ran, and of those that were not.
func (p *probes) during(do func() error) waits {
	p.mu.Lock()
	p.waits = nil
	p.mu.Unlock()
	err := do()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		err = p.err
	}
	w := waits{all: slices.Clone(p.waits), err: err}
	for _, began := range p.created {
		if still := time.Since(began); still > probeEvery {
			w.all = append(w.all, still)
		}
	}
	slices.Sort(w.all)
	return w
}
