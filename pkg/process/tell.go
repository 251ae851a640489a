package process

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// attempts is how often a pod that changes may be told something before it is tried again as a whole.
const attempts = 5

// BoundError is about a pod that has a node already. Pod is the pod as it is bound.
type BoundError struct{ Pod *v1.Pod }

func (e *BoundError) Error() string {
	return fmt.Sprintf("the pod is bound to node %s already", e.Pod.Spec.NodeName)
}

// Message is what a pod is told.
type Message struct {
	// Kind is how the patches are encoded.
	Kind types.PatchType
	// Word makes the patch for the pod as it is, nil for nothing to write. The patch has to name the UID, by which the
	// API server refuses it when a new pod has taken the name, and the version, by which it refuses it when the pod has
	// changed.
	Word func(*v1.Pod) ([]byte, error)
	// Subresources are those that the patch is for, none for the pod itself.
	Subresources []string
}

// Tell writes a message to a pod of a scheduling cycle. seen is the version that the informer has, nil if the pod is
// gone. It words the message again when the pod has changed. It fails with a BoundError if there is something to write
// and the pod is bound.
func Tell(ctx context.Context, client corev1client.PodsGetter, pod, seen *v1.Pod, m Message) error {
	newest := seen
	if newest == nil {
		// The API server says what has become of it. The pod of a cycle has the node that is meant for it.
		newest = pod.DeepCopy()
		newest.Spec.NodeName = ""
	}
	for attempt := 1; ; attempt++ {
		patch, err := m.Word(newest)
		if err != nil || patch == nil {
			return err
		}
		if newest.Spec.NodeName != "" {
			return &BoundError{newest}
		}
		pods := client.Pods(pod.Namespace)
		_, err = pods.Patch(ctx, pod.Name, m.Kind, patch, metav1.PatchOptions{}, m.Subresources...)
		if err == nil || !apierrors.IsConflict(err) || attempt == attempts {
			return err
		}
		fresh, reading := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if reading != nil {
			return fmt.Errorf("reading the pod: %w", reading)
		}
		if fresh.UID != pod.UID {
			return err
		}
		newest = fresh
	}
}
