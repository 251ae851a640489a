package live

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/hack/bench/rig"
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

// Watch watches the pods of a namespace, and tells the listeners of each that is bound.
func (b *Bed) Watch(namespace string, listeners ...func(*v1.Pod)) *Bound {
	w := &Bound{bed: b, namespace: namespace, more: make(chan struct{})}
	factory := informers.NewSharedInformerFactoryWithOptions(b.Client, 0, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = "spec.nodeName!=" }))
	informer := factory.Core().V1().Pods().Informer()
	rig.Must(informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		w.add(time.Now())
		for _, listen := range listeners {
			listen(obj.(*v1.Pod))
		}
	}}))
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

// Await waits until n pods have been bound, for as long as the scheduler runs, and the extender that it may call.
func (w *Bound) Await(n int, scheduler *Process) {
	var extenderExited <-chan struct{}
	if scheduler.Extender != nil {
		extenderExited = scheduler.Extender.exited
	}
	for {
		count, more := w.state()
		if count >= n {
			return
		}
		var err error
		select {
		case <-more:
		case <-scheduler.exited:
			err = fmt.Errorf("the scheduler ended without being stopped: %s", scheduler.lastWords())
		case <-extenderExited:
			err = fmt.Errorf("the extender ended without being stopped: %s", scheduler.Extender.lastWords())
		case <-w.bed.ctx.Done():
			err = context.Cause(w.bed.ctx)
		}
		rig.Check(err, "waiting for %d pods of namespace %s, %d are bound", n, w.namespace, count)
	}
}
