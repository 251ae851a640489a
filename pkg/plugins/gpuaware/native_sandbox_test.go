package gpuaware

import (
	"context"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/kubeview"
	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
)

const sharedPair = `shapes:
- {name: shared, count: 1, labels: {berth.dev/gpu-mode: shared, nvidia.com/gpu.product: Tesla-T4, nvidia.com/gpu.count: "2"}, allocatable: {cpu: "16", memory: 64Gi, nvidia.com/gpu: "2"}}
`

// TestNativeGroupsOfSharesStartWholeOrNotAtAll is about groups of the scheduler's core on a node of two GPUs.
//
//nolint:tparallel // the parts of the story follow each other on one control plane
func TestNativeGroupsOfSharesStartWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	w := &world{box.Start(t, sharedPair, sandbox.Options{NoKubelet: true,
		FeatureGates: []string{"GenericWorkload=true"}, RuntimeConfig: []string{"scheduling.k8s.io/v1beta1=true"}})}
	t.Run("a group of more shares than fit waits as a whole", func(t *testing.T) {
		w.nativeGroup(t, "four", 4)
		w.Await(t, "a member to be told why", func(context.Context) (bool, error) {
			for i := range 4 {
				pod := w.Pod(t, fmt.Sprint("four-", i))
				if box.Reason(pod) != "" {
					return true, nil
				}
			}
			return false, nil
		})
		w.NoneBound(t, "four-0", "four-1", "four-2", "four-3")
	})
	t.Run("one that fits starts on devices of its own", func(t *testing.T) {
		w.nativeGroup(t, "two", 2)
		used := map[int]bool{}
		for i := range 2 {
			name := fmt.Sprint("two-", i)
			w.Bound(t, name, "")
			for _, device := range kubeview.AssignedDevices(w.Pod(t, name)) {
				used[device] = true
			}
		}
		if len(used) != 2 {
			t.Errorf("the pods were told devices %v, want one each", used)
		}
	})
}

// nativeGroup creates a group and its members, each with more than half of a GPU.
func (w *world) nativeGroup(t *testing.T, name string, members int) {
	t.Helper()
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: schedulingv1beta1.PodGroupSpec{
		SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(members)}}}}
	if _, err := w.Client.SchedulingV1beta1().PodGroups("default").Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range members {
		pod := podObject(fmt.Sprint(name, "-", i), nil, strs{"alibabacloud.com/gpu-milli": "600"})
		pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &name}
		w.create(t, pod)
	}
}
