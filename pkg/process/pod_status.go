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

// attempts bounds the patches of a pod that changes meanwhile. After that its scheduling cycle fails.
const attempts = 5

// BoundError is about a pod that has a node already. Pod is the pod as it is bound.
type BoundError struct{ Pod *v1.Pod }

func (e *BoundError) Error() string {
	return fmt.Sprintf("the pod is bound to node %s already", e.Pod.Spec.NodeName)
}

// PatchPodStatus writes to the status of a pod of a scheduling cycle. seen is the version that the informer has, nil if
// the pod is gone. patchFor makes the patch, of that kind, for a version of the pod, nil if there is nothing to write;
// it is called again when the pod has changed. The patch must name the UID and the resource version: the API server
// then refuses it if a new pod has the name, or if the pod has changed. The error is a BoundError if there is something
// to write and the pod is bound.
func PatchPodStatus(ctx context.Context, client corev1client.PodsGetter, pod, seen *v1.Pod, kind types.PatchType,
	patchFor func(*v1.Pod) ([]byte, error)) error {
	newest := seen
	if newest == nil {
		// The API server says what has become of it. The pod of a cycle has the node that is meant for it.
		newest = pod.DeepCopy()
		newest.Spec.NodeName = ""
	}
	for attempt := 1; ; attempt++ {
		patch, err := patchFor(newest)
		if err != nil || patch == nil {
			return err
		}
		if newest.Spec.NodeName != "" {
			return &BoundError{newest}
		}
		pods := client.Pods(pod.Namespace)
		_, err = pods.Patch(ctx, pod.Name, kind, patch, metav1.PatchOptions{}, "status")
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
