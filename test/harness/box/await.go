package box

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/klog/v2"
)

// awaitWithin bounds every wait, long enough for the next minute but one on two cores that compile beside the test.
const awaitWithin = 4 * time.Minute

// Await asks until the condition holds. It is for what the API server does not tell the changes of: processes, files
// and pages. An API server that could not answer for now is asked again.
func (*Box) Await(t *testing.T, what string, done func(context.Context) (bool, error)) {
	t.Helper()
	Await(t, what, done)
}

// Await asks until a condition holds that is not about a control plane alone.
func Await(t *testing.T, what string, done func(context.Context) (bool, error)) {
	t.Helper()
	if err := await(t.Context(), awaitWithin, done); err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

// await asks less and less often, and returns the condition's error, or that there was not enough time with the last
// trouble.
func await(ctx context.Context, within time.Duration, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var trouble error
	pause := wait.Backoff{Duration: 20 * time.Millisecond, Factor: 1.5, Steps: 20, Cap: 500 * time.Millisecond}
	err := pause.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		held, err := done(ctx)
		if trouble = err; passes(err) {
			return false, nil
		}
		return held, err
	})
	if wait.Interrupted(err) {
		return errors.Join(err, trouble)
	}
	return err
}

// passes says whether an error is of a server that has too much to do, which says nothing about the condition.
func passes(err error) bool {
	return apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsInternalError(err) ||
		apierrors.IsTooManyRequests(err)
}

// watched waits until the condition holds for the objects of a source. The API server tells their changes.
func watched[T any](ctx context.Context, source cache.ListerWatcher, kind runtime.Object,
	holds func([]T) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, awaitWithin)
	defer cancel()
	store, informer, changes, ended := watchtools.NewIndexerInformerWatcherWithLogger(klog.Background(), source, kind)
	defer func() {
		changes.Stop()
		<-ended
	}()
	if !cache.WaitFor(ctx, "", informer.HasSyncedChecker()) {
		return fmt.Errorf("reading what there is: %w", context.Cause(ctx))
	}
	for {
		objects := make([]T, 0, len(store.ListKeys()))
		for _, object := range store.List() {
			objects = append(objects, object.(T))
		}
		if held, err := holds(objects); held || err != nil {
			return err
		}
		select {
		case <-changes.ResultChan():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// AwaitPods waits until the condition holds for the pods of the namespace.
func (b *Box) AwaitPods(t *testing.T, what string, holds func([]*v1.Pod) (bool, error)) {
	t.Helper()
	if err := watched(t.Context(), b.podsNamed(""), &v1.Pod{}, holds); err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

// AwaitPod waits until the condition holds for a pod, which may not exist yet, and returns it.
func (b *Box) AwaitPod(t *testing.T, name, what string, holds func(*v1.Pod) (bool, error)) *v1.Pod {
	t.Helper()
	var last *v1.Pod
	err := watched(t.Context(), b.podsNamed(name), &v1.Pod{}, func(pods []*v1.Pod) (bool, error) {
		if len(pods) == 0 {
			last = nil
			return false, nil
		}
		last = pods[0]
		return holds(last)
	})
	switch {
	case err == nil:
	case last == nil:
		t.Fatalf("waiting for pod %s %s: %v; there is no such pod", name, what, err)
	default:
		t.Fatalf("waiting for pod %s %s: %v; it is on node %q, with the reason %q",
			name, what, err, last.Spec.NodeName, Reason(last))
	}
	return last
}

func (b *Box) podsNamed(name string) cache.ListerWatcher {
	named := fields.Everything()
	if name != "" {
		named = fields.OneTermEqualSelector(metav1.ObjectNameField, name)
	}
	return cache.NewListWatchFromClient(b.Client.CoreV1().RESTClient(), "pods", b.Namespace, named)
}

// AwaitEvents waits until the condition holds for the events about pods of the namespace.
func (b *Box) AwaitEvents(t *testing.T, what string, holds func([]*v1.Event) (bool, error)) {
	t.Helper()
	source := cache.NewListWatchFromClient(b.Client.CoreV1().RESTClient(), "events", b.Namespace, fields.Everything())
	if err := watched(t.Context(), source, &v1.Event{}, holds); err != nil {
		t.Fatalf("waiting for %s in %s: %v", what, b.Namespace, err)
	}
}

// AwaitObjects waits until the condition holds for the objects of a resource.
func (*Box) AwaitObjects(t *testing.T, resource dynamic.ResourceInterface, what string,
	holds func([]*unstructured.Unstructured) (bool, error)) {
	t.Helper()
	if err := watched(t.Context(), objectsNamed(resource, ""), &unstructured.Unstructured{}, holds); err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

// AwaitObject waits until the condition holds for one object of a resource, which may not exist yet.
func (*Box) AwaitObject(t *testing.T, resource dynamic.ResourceInterface, name, what string,
	holds func(*unstructured.Unstructured) (bool, error)) {
	t.Helper()
	err := watched(t.Context(), objectsNamed(resource, name), &unstructured.Unstructured{},
		func(found []*unstructured.Unstructured) (bool, error) {
			if len(found) == 0 {
				return false, nil
			}
			return holds(found[0])
		})
	if err != nil {
		t.Fatalf("waiting for %s %s: %v", name, what, err)
	}
}

// AwaitGone waits until a resource has no object of a name.
func (*Box) AwaitGone(t *testing.T, resource dynamic.ResourceInterface, name string) {
	t.Helper()
	err := watched(t.Context(), objectsNamed(resource, name), &unstructured.Unstructured{},
		func(found []*unstructured.Unstructured) (bool, error) { return len(found) == 0, nil })
	if err != nil {
		t.Fatalf("waiting for %s to go: %v", name, err)
	}
}

func objectsNamed(resource dynamic.ResourceInterface, name string) cache.ListerWatcher {
	only := func(options *metav1.ListOptions) {
		if name != "" {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		}
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			only(&options)
			return resource.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			only(&options)
			return resource.Watch(ctx, options)
		},
	}
}
