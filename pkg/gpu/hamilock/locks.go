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
	lockWait = Lasts + time.Minute
	// lockLook is after what time a waiting pod looks again if it was told of no change.
	lockLook = 10 * time.Second
	// conflictPause is the pause after another writer of the node was faster.
	conflictPause = 20 * time.Millisecond
	// undoWithin bounds the release of a lock, which goes on when the binding was given up.
	undoWithin = 10 * time.Second
)

// Locks take HAMi's locks of nodes. The pods of this process that want the same node's wait in line, each in its
// own binding cycle; the first in line watches the node. It is safe for concurrent use.
type Locks struct {
	client   kubernetes.Interface
	recorder events.EventRecorder

	mu    sync.Mutex
	lines map[string]*line
}

// line is the pods that want the lock of one node.
type line struct {
	// first is filled by the pod whose turn it is; a channel serves those who wait in their order.
	first chan struct{}
	// changed wakes that pod.
	changed chan struct{}
	pods    int
}

// New returns the locks of a process.
func New(client kubernetes.Interface, recorder events.EventRecorder) *Locks {
	return &Locks{client: client, recorder: recorder, lines: map[string]*line{}}
}

// join returns the line of a node with one pod more in it.
func (l *Locks) join(node string) *line {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.lines[node]
	if q == nil {
		q = &line{first: make(chan struct{}, 1), changed: make(chan struct{}, 1)}
		l.lines[node] = q
	}
	q.pods++
	return q
}

func (l *Locks) leave(node string, q *line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q.pods--; q.pods == 0 {
		delete(l.lines, node)
	}
}

// Wake makes the first in the line of a node look again.
func (l *Locks) Wake(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.lines[node]; q != nil {
		select {
		case q.changed <- struct{}{}:
		default: // it has yet to look
		}
	}
}

// NodeChanged wakes those who wait for the node if its lock has changed.
func (l *Locks) NodeChanged(before, node *v1.Node) {
	if before == nil || before.Annotations[gpuview.HAMiLockKey] != node.Annotations[gpuview.HAMiLockKey] {
		l.Wake(node.Name)
	}
}

// Take waits until the pod holds the lock of the node, and returns the lock's value.
func (l *Locks) Take(ctx context.Context, pod *v1.Pod, node string) (string, error) {
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
		value, wait, holder, err := l.try(ctx, pod, node)
		if err != nil || value != "" {
			return value, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-q.changed:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return "", fmt.Errorf("waiting for the lock of node %s, held by %s: %w", node, holder, context.Cause(ctx))
		}
		timer.Stop()
	}
}

// try takes the lock if it is free or no longer counts. Else it returns after what time to look again, and who holds
// it.
func (l *Locks) try(ctx context.Context, pod *v1.Pod, name string) (value string, wait time.Duration,
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
			return "", min(lockLook, max(held.left(now), conflictPause)), holder, nil
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

// counts reports whether a lock of another pod still holds. One that has expired while its pod waited for its devices
// is said on that pod.
func (l *Locks) counts(ctx context.Context, held lock, node *v1.Node, now time.Time) (bool, error) {
	var owner *v1.Pod
	if held.pod != "" {
		var err error
		owner, err = l.client.CoreV1().Pods(held.namespace).Get(ctx, held.pod, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("reading pod %s/%s, which holds the lock of node %s: %w", held.namespace,
				held.pod, node.Name, err)
		}
		if served(owner, node.Name) {
			return false, nil
		}
	}
	if held.left(now) > 0 {
		return true, nil
	}
	if owner != nil {
		l.recorder.Eventf(owner, node, v1.EventTypeWarning, "LockExpired", "Binding",
			"HAMi's device plugin on node %s has not given the pod its devices within %v; "+
				"another pod takes the lock of the node",
			node.Name, Lasts)
	}
	return false, nil
}

// GiveBack removes the lock if it is still this one, and the pod was not bound all the same: then it is the plugin's.
func (l *Locks) GiveBack(ctx context.Context, pod *v1.Pod, name, value string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoWithin)
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
	return err //nolint:wrapcheck // the callers look at it and name the node
}
