package main

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/test/invariants"
)

var podGroups = schedulingv1alpha1.SchemeGroupVersion.WithResource("podgroups")

// binding is a pod that has got its node.
type binding struct {
	at      time.Time
	waiting time.Duration
}

// observer sees every change of pods, nodes and PodGroups, past the proxy, and hands it to the checker. Where the API
// server can no longer say what has changed since the last change that was seen, it compares lists: a pod that was
// bound meanwhile is a change then.
type observer struct {
	checker *invariants.Checker

	mu       sync.Mutex
	objects  map[string]map[types.NamespacedName]runtime.Object
	made     map[types.UID]time.Time
	bindings []binding
	changed  time.Time
}

func newObserver(checker *invariants.Checker) *observer {
	return &observer{checker: checker, objects: map[string]map[types.NamespacedName]runtime.Object{},
		made: map[types.UID]time.Time{}}
}

// follow watches until the context ends.
func (o *observer) follow(ctx context.Context, client kubernetes.Interface, custom dynamic.Interface) *sync.WaitGroup {
	groups := custom.Resource(podGroups).Namespace(namespace)
	var running sync.WaitGroup
	for name, source := range map[string]cache.ListerWatcher{
		"pods":  cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", namespace, fields.Everything()),
		"nodes": cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "nodes", "", fields.Everything()),
		"podgroups": &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return groups.List(ctx, options)
			},
			WatchFuncWithContext: groups.Watch,
		},
	} {
		// After a fault, a reflector would wait for up to 30 s by default, and see bindings so much later.
		pause := &wait.Backoff{Duration: 100 * time.Millisecond}
		store := cache.NewUndeltaStore(func(list []any) { o.replace(name, list) }, cache.MetaNamespaceKeyFunc)
		reflector := cache.NewReflectorWithOptions(source, nil, store, cache.ReflectorOptions{Backoff: pause})
		running.Go(func() { reflector.RunWithContext(ctx) })
	}
	return &running
}

// replace takes the differences between what is known of a kind and the objects that there are now.
func (o *observer) replace(kind string, list []any) {
	o.mu.Lock()
	gone := maps.Clone(o.objects[kind])
	o.mu.Unlock()
	for _, item := range list {
		object := item.(runtime.Object)
		key := keyOf(object)
		old, known := gone[key]
		delete(gone, key)
		switch {
		case known && uidOf(old) == uidOf(object):
			if old != object {
				o.take(kind, watch.Modified, object)
			}
			continue
		case known:
			o.take(kind, watch.Deleted, old)
		}
		o.take(kind, watch.Added, object)
	}
	for _, object := range gone {
		o.take(kind, watch.Deleted, object)
	}
}

func (o *observer) take(kind string, event watch.EventType, object runtime.Object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.objects[kind] == nil {
		o.objects[kind] = map[types.NamespacedName]runtime.Object{}
	}
	key, now := keyOf(object), time.Now()
	old := o.objects[kind][key]
	if event == watch.Deleted {
		delete(o.objects[kind], key)
	} else {
		o.objects[kind][key] = object
	}
	if pod, ok := object.(*v1.Pod); ok {
		o.changed = now
		before, _ := old.(*v1.Pod)
		switch {
		case before == nil:
			o.made[pod.UID] = now
		case event == watch.Deleted:
			delete(o.made, pod.UID)
		case before.Spec.NodeName == "" && pod.Spec.NodeName != "":
			o.bindings = append(o.bindings, binding{now, now.Sub(o.made[pod.UID])})
		}
	}
	o.checker.Observe(event, object, old)
}

// pods are those that exist, by name.
func (o *observer) pods() map[string]*v1.Pod {
	o.mu.Lock()
	defer o.mu.Unlock()
	pods := make(map[string]*v1.Pod, len(o.objects["pods"]))
	for key, object := range o.objects["pods"] {
		pods[key.Name] = object.(*v1.Pod)
	}
	return pods
}

// bound are the bindings since a time, the first first.
func (o *observer) bound(since time.Time) []binding {
	o.mu.Lock()
	defer o.mu.Unlock()
	i, _ := slices.BinarySearchFunc(o.bindings, since, func(b binding, t time.Time) int { return b.at.Compare(t) })
	return slices.Clone(o.bindings[i:])
}

// quietFor is how long no pod has changed.
func (o *observer) quietFor() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Since(o.changed)
}

func keyOf(object runtime.Object) types.NamespacedName {
	about := object.(metav1.Object)
	return types.NamespacedName{Namespace: about.GetNamespace(), Name: about.GetName()}
}

func uidOf(object runtime.Object) types.UID { return object.(metav1.Object).GetUID() }
