package hamilock

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/gpu/gpuview"
)

const (
	// lockWait is how long a pod waits for the lock of its node: longer than an abandoned lock lasts.
	lockWait = Expiry + time.Minute
	// pollEvery is after what time a waiting pod reads the lock again without an event.
	pollEvery = 10 * time.Second
	// conflictPause is the pause after a conflict with another writer of the node.
	conflictPause = 20 * time.Millisecond
	// releaseTimeout bounds the release of a lock, which continues when the context of the binding has ended.
	releaseTimeout = 10 * time.Second
)

// Locks acquire HAMi's locks of nodes. The pods of this process that want the lock of the same node queue up, each in
// its own binding cycle; the first one watches the node. It is safe for concurrent use.
type Locks struct {
	client   kubernetes.Interface
	recorder events.EventRecorder

	mu     sync.Mutex
	queues map[string]*queue
}

// queue is the pods that want the lock of one node.
type queue struct {
	// first is filled by the pod at the head; a channel serves its senders in their order.
	first chan struct{}
	// changed wakes that pod.
	changed chan struct{}
	pods    int
}

// New returns the locks of a process.
func New(client kubernetes.Interface, recorder events.EventRecorder) *Locks {
	return &Locks{client: client, recorder: recorder, queues: map[string]*queue{}}
}

// join adds a pod to the queue of a node.
func (l *Locks) join(node string) *queue {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.queues[node]
	if q == nil {
		q = &queue{first: make(chan struct{}, 1), changed: make(chan struct{}, 1)}
		l.queues[node] = q
	}
	q.pods++
	return q
}

func (l *Locks) leave(node string, q *queue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q.pods--; q.pods == 0 {
		delete(l.queues, node)
	}
}

// Wake makes the first pod in the queue of a node read the lock again.
func (l *Locks) Wake(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.queues[node]; q != nil {
		select {
		case q.changed <- struct{}{}:
		default: // it is awake already
		}
	}
}

// NodeChanged wakes the first pod in the queue of the node if the lock has changed.
func (l *Locks) NodeChanged(before, node *v1.Node) {
	if before == nil || before.Annotations[gpuview.HAMiLockKey] != node.Annotations[gpuview.HAMiLockKey] {
		l.Wake(node.Name)
	}
}

// Acquire waits until the pod owns the lock of the node, and returns the lock's value.
func (l *Locks) Acquire(ctx context.Context, pod *v1.Pod, node string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	q := l.join(node)
	defer l.leave(node, q)
	select {
	case q.first <- struct{}{}:
		defer func() { <-q.first }()
	case <-ctx.Done():
		return "", fmt.Errorf("waiting for the lock of node %s behind other pods: %w", node, context.Cause(ctx))
	}
	for {
		value, wait, holder, err := l.tryAcquire(ctx, pod, node)
		if err != nil || value != "" {
			return value, err
		}
		select {
		case <-q.changed:
		case <-time.After(wait):
		case <-ctx.Done():
			return "", fmt.Errorf("waiting for the lock of node %s, owned by %s: %w", node, holder, context.Cause(ctx))
		}
	}
}

// tryAcquire takes the lock if it is free or no longer counts. Else it returns after what time to try again, and the
// owner.
func (l *Locks) tryAcquire(ctx context.Context, pod *v1.Pod, name string) (value string, wait time.Duration,
	holder string, err error) {
	node, err := l.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", 0, "", fmt.Errorf("reading the lock of node %s: %w", name, err)
	}
	now := time.Now()
	held, locked := readLock(node)
	if locked && (held.namespace != pod.Namespace || held.pod != pod.Name) {
		holder = held.namespace + "/" + held.pod
		counts, err := l.counts(ctx, held, node, now)
		if err != nil {
			return "", 0, "", err
		}
		if counts {
			return "", min(pollEvery, max(held.remaining(now), conflictPause)), holder, nil
		}
	}
	value = lockOf(pod, now)
	err = l.write(ctx, node, value)
	if apierrors.IsConflict(err) {
		return "", conflictPause, "another writer", nil
	}
	if err != nil {
		return "", 0, "", fmt.Errorf("locking node %s: %w", name, err)
	}
	klog.FromContext(ctx).V(4).Info("Locked node for HAMi's device plugin", "pod", klog.KObj(pod), "node", name)
	return value, 0, "", nil
}

// counts reports whether the lock of another pod still counts. If it has expired while its pod waited for its devices,
// an event of that pod says so.
func (l *Locks) counts(ctx context.Context, held lock, node *v1.Node, now time.Time) (bool, error) {
	var owner *v1.Pod
	if held.pod != "" {
		var err error
		owner, err = l.client.CoreV1().Pods(held.namespace).Get(ctx, held.pod, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("reading pod %s/%s, which owns the lock of node %s: %w", held.namespace,
				held.pod, node.Name, err)
		}
		if served(owner, node.Name) {
			return false, nil
		}
	}
	if held.remaining(now) > 0 {
		return true, nil
	}
	if owner != nil {
		l.recorder.Eventf(owner, node, v1.EventTypeWarning, "LockExpired", "Binding",
			"HAMi's device plugin on node %s has not given the pod its devices within %v; "+
				"another pod takes the lock of the node",
			node.Name, Expiry)
	}
	return false, nil
}

// Release removes the lock if it has still this value. It leaves the lock to the device plugin if the pod is bound.
func (l *Locks) Release(ctx context.Context, pod *v1.Pod, name, value string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	now, err := l.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	if err == nil && now.UID == pod.UID && now.Spec.NodeName != "" {
		return nil
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, err := l.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && node.Annotations[gpuview.HAMiLockKey] != value {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the lock of node %s: %w", name, err)
		}
		return l.write(ctx, node, nil)
	})
}

// write sets the lock, or removes it with nil, unless the node has changed since it was read.
func (l *Locks) write(ctx context.Context, node *v1.Node, value any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": node.ResourceVersion,
		"annotations":     map[string]any{gpuview.HAMiLockKey: value},
	}})
	if err != nil {
		return fmt.Errorf("encoding the lock: %w", err)
	}
	_, err = l.client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err //nolint:wrapcheck // the callers check it and name the node
}
