package box

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Pods of these methods are in the namespace default.
const namespace = v1.NamespaceDefault

// Create creates a pod. The API server admits none before the namespace has a service account, so it is waited for.
func (b *Box) Create(t *testing.T, pod *v1.Pod) {
	t.Helper()
	b.Await(t, "the service account of pod "+pod.Name, func(ctx context.Context) (bool, error) {
		_, err := b.Client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// Pod reads a pod.
func (b *Box) Pod(t *testing.T, name string) *v1.Pod {
	t.Helper()
	pod, err := b.Client.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// Bound waits until a pod has a node, which must be the one named unless that is "". A pod that does not exist yet may be created by a
// controller.
func (b *Box) Bound(t *testing.T, name, node string) *v1.Pod {
	t.Helper()
	var pod *v1.Pod
	reason := ""
	defer func() {
		if t.Failed() {
			t.Logf("pod %s: %s", name, reason)
		}
	}()
	b.Await(t, fmt.Sprintf("pod %s on node %q", name, node), func(ctx context.Context) (bool, error) {
		var err error
		if pod, err = b.Client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			if apierrors.IsNotFound(err) {
				err = nil
			}
			return false, err
		}
		reason = Reason(pod)
		if on := pod.Spec.NodeName; on != "" && node != "" && on != node {
			return false, fmt.Errorf("it is on %s", on)
		}
		return pod.Spec.NodeName != "", nil
	})
	return pod
}

// Pending waits until a pod that has no node says so for this reason.
func (b *Box) Pending(t *testing.T, name, reason string) {
	t.Helper()
	b.Await(t, fmt.Sprintf("pod %s to be pending because %q", name, reason), func(ctx context.Context) (bool, error) {
		pod, err := b.Client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		if on := pod.Spec.NodeName; on != "" {
			return false, fmt.Errorf("it is on %s", on)
		}
		return strings.Contains(Reason(pod), reason), nil
	})
}

// Remove deletes a pod at once.
func (b *Box) Remove(t *testing.T, name string) {
	t.Helper()
	if err := b.Client.CoreV1().Pods(namespace).Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		t.Fatal(err)
	}
}

// Told waits for an event about an object that contains the text.
func (b *Box) Told(t *testing.T, object, text string) {
	t.Helper()
	b.Await(t, fmt.Sprintf("an event about %s that says %q", object, text), func(ctx context.Context) (bool, error) {
		n, err := b.Events(ctx, object, text)
		return n > 0, err
	})
}

// Events is how many events about an object contain the text. Repetitions of one event count once.
func (b *Box) Events(ctx context.Context, object, text string) (int, error) {
	list, err := b.Client.CoreV1().Events("").List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + object})
	if err != nil {
		return 0, err
	}
	n := 0
	for i := range list.Items {
		if strings.Contains(list.Items[i].Message, text) {
			n++
		}
	}
	return n, nil
}

// Reason is why a pod is not scheduled, as the scheduler last said it, or "".
func Reason(pod *v1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}
