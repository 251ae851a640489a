package process

import (
	"context"
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// What happens to pods that change is tested where devices are told, in the package gpuaware.
func TestTellSaysWhatKeepsItFromWriting(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	conflict := apierrors.NewConflict(v1.Resource("pods"), "p", errors.New("the object has been modified"))
	fails := func(err error) clienttesting.ReactionFunc {
		return func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err }
	}
	for name, tc := range map[string]struct {
		node           string
		patch          []byte
		word           error
		onPatch, onGet error
		want           func(error) bool
	}{
		"nothing to write to a bound pod": {node: "n", want: func(err error) bool { return err == nil }},
		"a bound pod": {node: "n", patch: []byte("{}"), want: func(err error) bool {
			bound := (*BoundError)(nil)
			return errors.As(err, &bound) && bound.Pod.Spec.NodeName == "n"
		}},
		"no words": {word: broken, want: func(err error) bool { return errors.Is(err, broken) }},
		"a patch that is refused": {patch: []byte("{}"), onPatch: broken,
			want: func(err error) bool { return errors.Is(err, broken) }},
		"a pod that cannot be read": {patch: []byte("{}"), onPatch: conflict, onGet: broken,
			want: func(err error) bool { return errors.Is(err, broken) }},
		"a pod that is gone": {patch: []byte("{}"), want: apierrors.IsNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := fake.NewClientset()
			if tc.onPatch != nil {
				client.PrependReactor("patch", "pods", fails(tc.onPatch))
				client.PrependReactor("get", "pods", fails(tc.onGet))
			}
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default", UID: "p"}}
			pod.Spec.NodeName = "meant"
			var seen *v1.Pod
			if tc.node != "" {
				seen = pod.DeepCopy()
				seen.Spec.NodeName = tc.node
			}
			err := PatchPodStatus(context.Background(), client.CoreV1(), pod, seen, types.MergePatchType,
				func(*v1.Pod) ([]byte, error) { return tc.patch, tc.word })
			if !tc.want(err) {
				t.Errorf("error %v", err)
			}
		})
	}
}
