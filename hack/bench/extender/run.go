package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/pprof/profile"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/hack/bench/rig"
)

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

// leadIn is how many pods are bound before the measurement begins: until then the scheduler fills its caches.
const leadIn = 50

// profileFor is how long the scheduler profiles itself.
const profileFor = 5 * time.Second

// measure starts the processes, creates the pods and follows them until the last is bound.
func measure(ctx context.Context, bed *rig.Rig, c contender, namespace string, pods int) (_ run, err error) {
	ctx, cancel := context.WithTimeout(ctx, awaitWithin)
	defer cancel()
	if err := bed.Namespace(ctx, namespace); err != nil {
		return run{}, err
	}
	defer func() { err = errors.Join(err, bed.Empty(context.WithoutCancel(ctx), namespace)) }()
	bound, err := follow(ctx, bed, namespace, pods)
	if err != nil {
		return run{}, err
	}
	var p processes
	address := ""
	if c.extenderProfile != "" {
		if p.extender, err = bed.StartExtender(ctx, []byte(head+c.extenderProfile)); err != nil {
			return run{}, err
		}
		defer p.extender.Stop()
		address = p.extender.Address
	}
	if p.scheduler, err = bed.StartScheduler(c.config(address)); err != nil {
		return run{}, err
	}
	defer p.scheduler.Stop()
	create := func(from, n int) error {
		return rig.CreateAll(n, func(i int) error {
			return bed.CreatePod(ctx, rig.Pod(namespace, fmt.Sprintf("p%d", from+i), "default-scheduler", rig.OneGPU()))
		})
	}
	if err := create(0, leadIn); err != nil {
		return run{}, err
	}
	if err := p.await(ctx, bound, leadIn); err != nil {
		return run{}, err
	}
	before, err := p.read(ctx)
	if err != nil {
		return run{}, err
	}
	samples := make(chan *profile.Profile, 1)
	go func() {
		taken, _ := p.scheduler.Profile(ctx, profileFor)
		samples <- taken
	}()
	if err := create(leadIn, pods-leadIn); err != nil {
		return run{}, err
	}
	if err := p.await(ctx, bound, pods-leadIn); err != nil {
		return run{}, err
	}
	after, err := p.read(ctx)
	if err != nil {
		return run{}, err
	}
	taken := <-samples
	if taken == nil {
		return run{}, errors.New("the scheduler made no CPU profile")
	}
	return account(c, pods, before, after, taken), nil
}

// processes are those of one run.
type processes struct {
	scheduler *rig.Scheduler
	extender  *rig.Extender
}

// follow tells of each pod of a namespace that is bound.
func follow(ctx context.Context, bed *rig.Rig, namespace string, pods int) (<-chan struct{}, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(bed.Client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = "spec.nodeName!=" }))
	bound := make(chan struct{}, pods)
	informer := factory.Core().V1().Pods().Informer()
	if _, err := informer.AddEventHandler(
		cache.ResourceEventHandlerFuncs{AddFunc: func(any) { bound <- struct{}{} }}); err != nil {
		return nil, fmt.Errorf("watching the pods: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, fmt.Errorf("watching the pods: %w", context.Cause(ctx))
	}
	return bound, nil
}

// await waits until that many more pods are bound.
func (p *processes) await(ctx context.Context, bound <-chan struct{}, n int) error {
	var extenderExited <-chan struct{}
	if p.extender != nil {
		extenderExited = p.extender.Exited()
	}
	for i := range n {
		select {
		case <-bound:
		case <-p.scheduler.Exited():
			return fmt.Errorf("the scheduler has ended: %s", p.scheduler.LastWords())
		case <-extenderExited:
			return fmt.Errorf("the extender has ended: %s", p.extender.LastWords())
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d pods, of which %d are bound: %w", n, i, ctx.Err())
		}
	}
	return nil
}

// reading is what was used and counted up to one moment.
type reading struct {
	at                  time.Time
	scheduler, extender time.Duration
	load                rig.Load
	algorithm           rig.Algorithm
}

func (p *processes) read(ctx context.Context) (r reading, err error) {
	r.at = time.Now()
	if r.scheduler, err = p.scheduler.CPU(); err != nil {
		return r, err
	}
	if p.extender != nil {
		if r.extender, err = p.extender.CPU(); err != nil {
			return r, err
		}
	}
	if r.load, err = rig.ReadLoad(); err != nil {
		return r, err
	}
	families, err := p.scheduler.Metrics(ctx)
	if err != nil {
		return r, err
	}
	r.algorithm = rig.ReadAlgorithm(families)
	return r, nil
}

func account(c contender, pods int, before, after reading, samples *profile.Profile) run {
	n, took := float64(pods-leadIn), after.at.Sub(before.at)
	scheduler, extender := after.scheduler-before.scheduler, after.extender-before.extender
	algorithm := after.algorithm.Minus(before.algorithm)
	r := run{
		Contender: c.name, Pods: pods, AlgorithmMillis: algorithm.MillisPerCycle(), PodsPerSecond: n / took.Seconds(),
		SchedulerMillisPerPod: 1000 * scheduler.Seconds() / n, ExtenderMillisPerPod: 1000 * extender.Seconds() / n,
		OtherCores: after.load.OtherCoresSince(before.load),
	}
	outside := 100.0
	for _, point := range rig.AlgorithmPoints() {
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

// withShares adds what is outside the extension points, once it is known what stock does there.
func withShares(runs []run) []run {
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
	return runs
}
