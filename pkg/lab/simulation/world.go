package simulation

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/cluster/inputs"
	"berth.dev/berth/pkg/lab/simulation/memapi"
)

// World is a cluster in memory with a kube-scheduler that has Berth's plugins. Fill puts objects into it, Start makes
// the scheduler, and Run lets it schedule until Stop. Then it can be started again.
type World struct {
	// API is what the scheduler reads and writes.
	API *memapi.Server
	// Scheduler is set by Start. Its profiles look at the best nodes first, like those of the command.
	*scheduler.Scheduler
	// AllNodes are the profiles without candidates: they look at every node.
	AllNodes map[string]framework.Framework
	// Plugins are the plugins by name, except those of Kubernetes.
	Plugins map[string]fwk.Plugin
	ctx     context.Context //nolint:containedctx // that of the scheduler
	cancel  context.CancelFunc
	// informers are the factories that Start has started, and done is closed when the scheduling loop has ended.
	informers []interface{ Shutdown() }
	done      chan struct{}

	mu      sync.Mutex
	changes int
	evicted map[types.NamespacedName]bool
}

// NewWorld makes an empty world whose API serves Berth's own kinds. It records bindings and deletions of pods, unless
// the caller sets another observer of the API.
func NewWorld() *World {
	w := &World{API: memapi.New(), evicted: map[types.NamespacedName]bool{}}
	w.API.Observe = w.observe
	w.serve(nil)
	return w
}

// Fill puts the objects of a cluster into the API, which then serves their kinds. Take returns the object to put there,
// which the API owns then, or nil.
func (w *World) Fill(objects []runtime.Object, take func(runtime.Object) runtime.Object) error {
	w.serve(objects)
	for _, obj := range objects {
		if obj = take(obj); obj == nil {
			continue
		}
		if err := w.API.Create(obj); err != nil {
			return fmt.Errorf("filling the cluster: %w", err)
		}
	}
	return nil
}

// serve makes the API serve Berth's own kinds, and the custom resources among the objects in their version only:
// readers take the newest version that is served.
func (w *World) serve(objects []runtime.Object) {
	present := map[schema.GroupVersionKind]bool{}
	for _, obj := range objects {
		present[obj.GetObjectKind().GroupVersionKind()] = true
	}
	for _, kind := range inputs.Kinds() {
		gvk := kind.GroupVersion().WithKind(kind.Kind)
		own := kind.Cluster || kind.Group == schedulingv1alpha1.GroupName
		if (own || present[gvk]) && !scheme.Scheme.Recognizes(gvk) {
			w.API.Register(kind.GroupVersionResource, kind.Kind, !kind.Cluster)
		}
	}
}

// Settle waits, on a virtual clock, until all goroutines are blocked: informers, plugins and preemption have nothing
// left to do.
func (*World) Settle() { synctest.Wait() }

func (w *World) observe(e memapi.Event) {
	pod, ok := e.Object.(*v1.Pod)
	if !ok || e.Type == memapi.Added {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case e.Type == memapi.Deleted || pod.DeletionTimestamp != nil:
		w.evicted[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = true
		w.changes++
	case pod.Spec.NodeName != "" && e.Old.(*v1.Pod).Spec.NodeName == "":
		w.changes++
	}
}

// Remove deletes a pod, which does not count as evicted.
func (w *World) Remove(name types.NamespacedName) {
	w.API.Delete(v1.SchemeGroupVersion.WithResource("pods"), name)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.evicted, name)
}

// Evicted are the pods that the scheduler has deleted.
func (w *World) Evicted() map[types.NamespacedName]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.evicted)
}

// Changes is how often a pod was bound or deleted.
func (w *World) Changes() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changes
}
