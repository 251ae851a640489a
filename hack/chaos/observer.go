package main

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/test/invariants"
)

var podGroups = schedulingv1alpha1.SchemeGroupVersion.WithResource("podgroups")

// source is a kind of objects that is watched.
type source struct {
	list  func(context.Context) (runtime.Object, error)
	watch func(ctx context.Context, after string) (watch.Interface, error)
}

// binding is a pod that has got its node.
type binding struct {
	at      time.Time
	pod     types.NamespacedName
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
	options := func(after string) metav1.ListOptions {
		return metav1.ListOptions{ResourceVersion: after, AllowWatchBookmarks: true}
	}
	var wait sync.WaitGroup
	for kind, s := range map[string]source{
		"pods": {
			func(ctx context.Context) (runtime.Object, error) {
				return client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
			},
			func(ctx context.Context, after string) (watch.Interface, error) {
				return client.CoreV1().Pods(namespace).Watch(ctx, options(after))
			},
		},
		"nodes": {
			func(ctx context.Context) (runtime.Object, error) {
				return client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			},
			func(ctx context.Context, after string) (watch.Interface, error) {
				return client.CoreV1().Nodes().Watch(ctx, options(after))
			},
		},
		"podgroups": {
			func(ctx context.Context) (runtime.Object, error) {
				return custom.Resource(podGroups).Namespace(namespace).List(ctx, metav1.ListOptions{})
			},
			func(ctx context.Context, after string) (watch.Interface, error) {
				return custom.Resource(podGroups).Namespace(namespace).Watch(ctx, options(after))
			},
		},
	} {
		wait.Go(func() { o.run(ctx, kind, s) })
	}
	return &wait
}

func (o *observer) run(ctx context.Context, kind string, s source) {
	after := ""
	pause := time.NewTicker(100 * time.Millisecond)
	defer pause.Stop()
	for ctx.Err() == nil {
		if after == "" {
			list, err := s.list(ctx)
			if err == nil {
				after, err = o.compare(kind, list)
			}
			if err != nil {
				after = ""
			}
		}
		if after != "" {
			after = o.stream(ctx, kind, s, after)
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
	}
}

// stream takes changes until the connection breaks, and returns from where to go on, or nothing if a list is needed.
func (o *observer) stream(ctx context.Context, kind string, s source, after string) string {
	w, err := s.watch(ctx, after)
	if err != nil {
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			return ""
		}
		return after
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if event.Type == watch.Error {
			return ""
		}
		object, err := meta.Accessor(event.Object)
		if err != nil {
			return ""
		}
		after = object.GetResourceVersion()
		if event.Type != watch.Bookmark {
			o.take(kind, event.Type, event.Object)
		}
	}
	return after
}

// compare takes the differences between a list and what is known.
func (o *observer) compare(kind string, list runtime.Object) (after string, err error) {
	items, err := meta.ExtractList(list)
	if err != nil {
		return "", err
	}
	o.mu.Lock()
	gone := maps.Clone(o.objects[kind])
	o.mu.Unlock()
	for _, item := range items {
		key := keyOf(item)
		event := watch.Added
		if old, known := gone[key]; known && uidOf(old) == uidOf(item) {
			event = watch.Modified
			delete(gone, key)
		}
		if old, known := gone[key]; known {
			o.take(kind, watch.Deleted, old)
			delete(gone, key)
		}
		o.take(kind, event, item)
	}
	for _, object := range gone {
		o.take(kind, watch.Deleted, object)
	}
	about, err := meta.ListAccessor(list)
	if err != nil {
		return "", err
	}
	return about.GetResourceVersion(), nil
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
			o.bindings = append(o.bindings, binding{now, key, now.Sub(o.made[pod.UID])})
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

// drop returns the bindings before a time, and forgets them.
func (o *observer) drop(before time.Time) []binding {
	o.mu.Lock()
	defer o.mu.Unlock()
	i, _ := slices.BinarySearchFunc(o.bindings, before, func(b binding, t time.Time) int { return b.at.Compare(t) })
	taken := o.bindings[:i]
	o.bindings = slices.Clone(o.bindings[i:])
	return taken
}

// quietFor is how long no pod has changed.
func (o *observer) quietFor() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return time.Since(o.changed)
}

func keyOf(object runtime.Object) types.NamespacedName {
	about, err := meta.Accessor(object)
	if err != nil {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: about.GetNamespace(), Name: about.GetName()}
}

func uidOf(object runtime.Object) types.UID {
	about, err := meta.Accessor(object)
	if err != nil {
		return ""
	}
	return about.GetUID()
}
