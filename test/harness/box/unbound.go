package box

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NoneBound watches pods of a group that cannot start for a second: a part of it that is to be bound would be bound by then.
func (b *Box) NoneBound(t *testing.T, names ...string) {
	t.Helper()
	// The watch is opened for as long as that takes, and tells at first of the pods that there are.
	pods, err := b.Client.CoreV1().Pods(namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer pods.Stop()
	over := time.AfterFunc(time.Second, pods.Stop)
	defer over.Stop()
	for event := range pods.ResultChan() {
		if pod, ok := event.Object.(*v1.Pod); ok && slices.Contains(names, pod.Name) && pod.Spec.NodeName != "" {
			t.Fatalf("pod %s of a group that cannot start is on %s", pod.Name, pod.Spec.NodeName)
		}
	}
}
