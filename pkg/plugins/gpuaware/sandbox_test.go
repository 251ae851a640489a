package gpuaware

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/kubeview"
	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
)

// fleetFile is a shared node of two GPUs, one with a label that cannot be read, and one whose GPUs are claimed.
const fleetFile = `shapes:
- {name: shared, count: 2, labels: {berth.dev/gpu-mode: shared, nvidia.com/gpu.product: Tesla-T4, nvidia.com/gpu.count: "2"}, allocatable: {cpu: "16", memory: 64Gi, nvidia.com/gpu: "2"}}
- {name: mislabelled, count: 1, labels: {nvidia.com/gpu.product: Tesla-T4, nvidia.com/gpu.memory: lots}, allocatable: {cpu: "16", memory: 64Gi, nvidia.com/gpu: "1"}}
- {name: claimed, count: 1, allocatable: {cpu: "16", memory: 64Gi}}
`

// world is a real API server with the built scheduler.
type world struct{ *box.Box }

func (w *world) create(t *testing.T, pod *v1.Pod) {
	t.Helper()
	pod.UID = ""
	resources := &pod.Spec.Containers[0].Resources
	resources.Limits = resources.Requests.DeepCopy() // extended resources want equal limits
	if _, err := w.Client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// settled waits until every pod is bound or known not to fit, and returns them.
func (w *world) settled(t *testing.T, count int) []v1.Pod {
	t.Helper()
	var pods []v1.Pod
	w.Await(t, fmt.Sprintf("%d pods to settle", count), func(ctx context.Context) (bool, error) {
		list, err := w.Client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		pods = list.Items
		settled := 0
		for i := range pods {
			if pods[i].Spec.NodeName != "" || box.Reason(&pods[i]) != "" {
				settled++
			}
		}
		return settled == count, nil
	})
	return pods
}

// refused waits until it is known that the pod finds no free share, and fails if it is bound.
func (w *world) refused(t *testing.T, name string) {
	t.Helper()
	w.Pending(t, name, "free GPU share (need ")
}

// TestOnARealControlPlane runs the built scheduler with the rights of the shipped ClusterRole.
//
//nolint:tparallel // the parts share one control plane, whose scheduler one of them kills
func TestOnARealControlPlane(t *testing.T) {
	t.Parallel()
	w := &world{box.Start(t, fleetFile, sandbox.Options{})}

	t.Run("shares are promised once, over a kill of the scheduler", func(t *testing.T) {
		for i := range 5 { // 6 of 600 would need more GPUs than the four there are
			w.create(t, podObject(fmt.Sprintf("early-%d", i), nil, strs{"alibabacloud.com/gpu-milli": "600"}))
		}
		w.KillScheduler(t)
		for i := range 5 {
			w.create(t, podObject(fmt.Sprintf("late-%d", i), nil, strs{"gpu-fraction": "0.4"}))
		}
		used, refused := map[string]int{}, 0
		for _, pod := range w.settled(t, 10) {
			if pod.Spec.NodeName == "" {
				refused++
				if !strings.Contains(box.Reason(&pod), "free GPU share (need ") {
					t.Errorf("pod %s is pending with %q", pod.Name, box.Reason(&pod))
				}
				continue
			}
			milli := 600
			if strings.HasPrefix(pod.Name, "late") {
				milli = 400
			}
			devices := kubeview.AssignedDevices(&pod)
			if len(devices) != 1 {
				t.Errorf("pod %s on %s was told the devices %v", pod.Name, pod.Spec.NodeName, devices)
				continue
			}
			used[fmt.Sprint(pod.Spec.NodeName, "/", devices[0])] += milli
		}
		if refused == 0 {
			t.Errorf("nothing was refused of 5×600 and 5×400 milli-GPU on four GPUs: %v", used)
		}
		for device, milli := range used {
			if milli > 1000 {
				t.Errorf("device %s carries %d milli-GPU", device, milli)
			}
		}
	})

	t.Run("an edit of a request frees nothing, over a kill of the scheduler", func(t *testing.T) {
		patch := []byte(`{"metadata":{"annotations":{"alibabacloud.com/gpu-milli":null,"alibabacloud.com/gpu-index":null,"gpu-fraction":null,"runai-gpu":null}}}`)
		edited := ""
		for _, pod := range w.settled(t, 10) {
			if pod.Spec.NodeName == "" {
				continue
			}
			if _, err := w.Client.CoreV1().Pods("default").Patch(t.Context(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			edited = pod.Name
		}
		w.said(t, edited, "GrantEdited")
		w.create(t, podObject("before", nil, strs{"alibabacloud.com/gpu-milli": "900"}))
		w.refused(t, "before")
		w.KillScheduler(t)
		w.create(t, podObject("after", nil, strs{"alibabacloud.com/gpu-milli": "901"}))
		w.refused(t, "after")
	})

	t.Run("what cannot be read is said on the object", func(t *testing.T) {
		w.create(t, podObject("malformed", nil, strs{"gpu-fraction": "half"}))
		w.Pending(t, "malformed", `pod annotation gpu-fraction: "half" is not a decimal fraction of a GPU above 0 and up to 1`)
		w.Await(t, "the node's event", func(ctx context.Context) (bool, error) {
			events, err := w.Client.CoreV1().Events("").List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Node,type=Warning"})
			if err != nil {
				return false, err
			}
			for _, e := range events.Items {
				if strings.Contains(e.Message, `node label nvidia.com/gpu.memory: "lots" is not the memory of one GPU`) {
					return true, nil
				}
			}
			return false, nil
		})
	})

	t.Run("a pod that asks for GPUs is served by claims", func(t *testing.T) {
		nodes, err := w.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		name := ""
		for _, n := range nodes.Items {
			if strings.HasPrefix(n.Name, "claimed") {
				name = n.Name
			}
		}
		if _, err := w.Client.ResourceV1().DeviceClasses().Create(t.Context(), gpuClass(), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		slice := gpuSlice(name, 2, "NVIDIA A100-SXM4-80GB", "80Gi")
		slice.UID, slice.ResourceVersion = "", ""
		if _, err := w.Client.ResourceV1().ResourceSlices().Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.create(t, podObject("by-claim", strs{"nvidia.com/gpu": "2"}, strs{"berth.dev/gpu-memory-min": "40Gi"}))
		w.create(t, podObject("too-many", strs{"nvidia.com/gpu": "3"}, strs{"berth.dev/gpu-memory-min": "40Gi"}))
		w.Bound(t, "by-claim", name)
		w.Pending(t, "too-many", "too few GPUs (need 3, have 2)")
	})
}
