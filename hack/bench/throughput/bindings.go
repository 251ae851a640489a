package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/hack/bench/rig"
)

// bindings sees pods be bound. It watches only pods that have a node: the API server sends each of them once.
type bindings struct {
	first, all chan struct{}
	total      int

	mu         sync.Mutex
	bound      int
	began, end time.Time
}

// watchBindings watches until total pods of the namespace are bound or ctx ends.
func watchBindings(ctx context.Context, bed *rig.Rig, total int) (*bindings, error) {
	b := &bindings{first: make(chan struct{}), all: make(chan struct{}), total: total}
	factory := informers.NewSharedInformerFactoryWithOptions(bed.Client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = "spec.nodeName!=" }))
	informer := factory.Core().V1().Pods().Informer()
	add := cache.ResourceEventHandlerFuncs{AddFunc: func(any) { b.add(time.Now()) }}
	if _, err := informer.AddEventHandler(add); err != nil {
		return nil, fmt.Errorf("watching the pods: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, fmt.Errorf("watching the pods: %w", context.Cause(ctx))
	}
	return b, nil
}

func (b *bindings) add(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bound++
	b.end = now
	if b.bound == 1 {
		b.began = now
		close(b.first)
	}
	if b.bound == b.total {
		close(b.all)
	}
}

func (b *bindings) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bound
}

// perSecond is the rate from the first binding to the last.
func (b *bindings) perSecond() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return float64(b.bound-1) / b.end.Sub(b.began).Seconds()
}

// await waits for first or all, for as long as the scheduler runs.
func (b *bindings) await(ctx context.Context, reached <-chan struct{}, scheduler *rig.Scheduler) error {
	select {
	case <-reached:
		return nil
	case <-scheduler.Exited():
		return fmt.Errorf("the scheduler ended by itself: %s", scheduler.LastWords())
	case <-ctx.Done():
		return fmt.Errorf("waiting for %d pods, of which %d are bound: %w", b.total, b.count(), context.Cause(ctx))
	}
}
