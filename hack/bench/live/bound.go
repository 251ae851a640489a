package live

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/hack/bench/rig"
	"berth.dev/berth/pkg/sandbox"
)

// Bound sees pods of a namespace be bound. It watches only pods that have a node: the API server sends each of them
// once.
type Bound struct {
	bed        *Bed
	namespace  string
	mu         sync.Mutex
	count      int
	began, end time.Time
	// more is closed when a further pod is bound, and replaced.
	more chan struct{}
}

// Watch watches the pods of a namespace.
func (b *Bed) Watch(namespace string) *Bound {
	w := &Bound{bed: b, namespace: namespace, more: make(chan struct{})}
	factory := informers.NewSharedInformerFactoryWithOptions(b.client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = "spec.nodeName!=" }))
	informer := factory.Core().V1().Pods().Informer()
	rig.Must(informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { w.add(time.Now()) }}))
	factory.Start(b.ctx.Done())
	if !cache.WaitForCacheSync(b.ctx.Done(), informer.HasSynced) {
		rig.Check(context.Cause(b.ctx), "watching the pods of namespace %s", namespace)
	}
	return w
}

func (w *Bound) add(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.count == 0 {
		w.began = now
	}
	w.count++
	w.end = now
	close(w.more)
	w.more = make(chan struct{})
}

func (w *Bound) state() (count int, more <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count, w.more
}

// Count is how many pods have been bound.
func (w *Bound) Count() int {
	count, _ := w.state()
	return count
}

// PerSecond is the rate from the first binding to the last.
func (w *Bound) PerSecond() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return float64(w.count-1) / w.end.Sub(w.began).Seconds()
}

// Await waits until n pods have been bound, for as long as the scheduler runs.
func (w *Bound) Await(n int, scheduler *Process) {
	for {
		count, more := w.state()
		if count >= n {
			return
		}
		var err error
		select {
		case <-more:
		case <-scheduler.exited:
			err = fmt.Errorf("the scheduler ended without being stopped: %s", sandbox.LastLogLine(scheduler.log))
		case <-w.bed.ctx.Done():
			err = context.Cause(w.bed.ctx)
		}
		rig.Check(err, "waiting for %d pods of namespace %s, %d are bound", n, w.namespace, count)
	}
}
