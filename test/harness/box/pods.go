package box

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"berth.dev/berth/test/harness/require"
)

// Create creates a pod in the namespace, for the nodes of the part if the box is one. The API server admits none before
// the namespace has a service account, so it is waited for.
func (b *Box) Create(t *testing.T, pod *v1.Pod) *v1.Pod {
	t.Helper()
	b.Own(pod)
	var created *v1.Pod
	b.Await(t, "the service account of pod "+pod.Name, func(ctx context.Context) (bool, error) {
		var err error
		created, err = b.Client.CoreV1().Pods(b.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		return err == nil, err
	})
	return created
}

// Pod reads a pod.
func (b *Box) Pod(t *testing.T, name string) *v1.Pod {
	t.Helper()
	pod, err := b.Client.CoreV1().Pods(b.Namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return pod
}

// Bound waits until a pod has a node, which must be the one named unless that is "". A pod that does not exist yet may
// be created by a controller.
func (b *Box) Bound(t *testing.T, name, node string) *v1.Pod {
	t.Helper()
	return b.AwaitPod(t, name, fmt.Sprintf("to be on node %q", node), func(pod *v1.Pod) (bool, error) {
		if on := pod.Spec.NodeName; on != "" && node != "" && on != node {
			return false, fmt.Errorf("it is on %s", on)
		}
		return pod.Spec.NodeName != "", nil
	})
}

// BoundPods waits until that number of pods of the namespace whose names begin with the prefix have a node, and no
// more.
func (b *Box) BoundPods(t *testing.T, prefix string, n int) {
	t.Helper()
	b.AwaitPods(t, fmt.Sprintf("%d bound pods %s* in %s", n, prefix, b.Namespace), func(pods []*v1.Pod) (bool, error) {
		bound := 0
		for _, pod := range pods {
			if pod.Spec.NodeName != "" && strings.HasPrefix(pod.Name, prefix) {
				bound++
			}
		}
		return bound == n, nil
	})
}

// Pending waits until a pod that has no node says so for this reason.
func (b *Box) Pending(t *testing.T, name, reason string) {
	t.Helper()
	b.AwaitPod(t, name, fmt.Sprintf("to be pending because %q", reason), func(pod *v1.Pod) (bool, error) {
		if on := pod.Spec.NodeName; on != "" {
			return false, fmt.Errorf("it is on %s", on)
		}
		return strings.Contains(Reason(pod), reason), nil
	})
}

// Remove deletes a pod at once.
func (b *Box) Remove(t *testing.T, name string) {
	t.Helper()
	at := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	require.NoError(t, b.Client.CoreV1().Pods(b.Namespace).Delete(t.Context(), name, at))
}

// Patch merges what it is given into a pod.
func (b *Box) Patch(t *testing.T, name, content string) {
	t.Helper()
	_, err := b.Client.CoreV1().Pods(b.Namespace).Patch(t.Context(), name, types.MergePatchType, []byte(content),
		metav1.PatchOptions{})
	require.NoError(t, err)
}

// Told waits for an event about a pod of the namespace, or about an object of the cluster, that contains the text in
// its message or has it as its reason.
func (b *Box) Told(t *testing.T, object, text string) {
	t.Helper()
	about := fields.OneTermEqualSelector("involvedObject.name", object)
	source := cache.NewListWatchFromClient(b.Client.CoreV1().RESTClient(), "events", metav1.NamespaceAll, about)
	err := watched(t.Context(), source, &v1.Event{}, func(events []*v1.Event) (bool, error) {
		return b.count(events, text) > 0, nil
	})
	if err != nil {
		t.Fatalf("waiting for an event about %s that says %q: %v", object, text, err)
	}
}

// Events is how many events about a pod of the namespace, or about an object of the cluster, contain the text in their
// message or have it as their reason. Repetitions of one event count once.
func (b *Box) Events(ctx context.Context, object, text string) (int, error) {
	about := metav1.ListOptions{FieldSelector: "involvedObject.name=" + object}
	list, err := b.Client.CoreV1().Events(metav1.NamespaceAll).List(ctx, about)
	if err != nil {
		return 0, err
	}
	events := make([]*v1.Event, len(list.Items))
	for i := range list.Items {
		events[i] = &list.Items[i]
	}
	return b.count(events, text), nil
}

func (b *Box) count(events []*v1.Event, text string) int {
	n := 0
	for _, e := range events {
		here := e.InvolvedObject.Namespace == "" || e.InvolvedObject.Namespace == b.Namespace
		if here && (e.Reason == text || strings.Contains(e.Message, text)) {
			n++
		}
	}
	return n
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
