package tools_test

import (
	"context"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/objects"
)

// in puts a pod into a pool.
func in(pool string, pod *v1.Pod) *v1.Pod {
	pod.Spec.NodeSelector["pool"] = pool
	return pod
}

// with adds amounts of resources to a pod.
func with(pod *v1.Pod, amounts map[v1.ResourceName]string) *v1.Pod {
	resources := &pod.Spec.Containers[0].Resources
	for name, amount := range amounts {
		resources.Requests[name], resources.Limits[name] = resource.MustParse(amount), resource.MustParse(amount)
	}
	return pod
}

// evictsWhereThatHelps has a full node of either model. By priority, the scheduler would rather evict the pod on the
// T4s, where the pod that comes could not run.
func evictsWhereThatHelps(t *testing.T, shared *box.Box) {
	for name, value := range map[string]int32{"low": 1, "middle": 10, "high": 100} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		if err := box.CreatePriorityClass(t.Context(), shared.Client, class); err != nil {
			t.Fatal(err)
		}
	}
	of := func(class string, pod *v1.Pod) *v1.Pod {
		// Without a kubelet the test itself must end a pod.
		pod.Spec.PriorityClassName, pod.Spec.TerminationGracePeriodSeconds = class, ptr.To(int64(0))
		return in("full", pod)
	}
	place(t, shared, of("middle",
		gpuPod("on-large", 4, map[string]string{"berth.dev/gpu-models": "NVIDIA-A100-SXM4-80GB"})))
	place(t, shared, of("low", gpuPod("on-small", 4, nil)))
	if node := place(t, shared,
		of("high", gpuPod("urgent", 4, map[string]string{"berth.dev/gpu-memory-min": "40Gi"}))); node != "large-0" {
		t.Errorf("the urgent pod went to %s", node)
	}
	shared.Pod(t, "on-small") // it is there
	// Nothing is evicted for a pod that would fit nowhere even then.
	shared.Create(t, of("high",
		gpuPod("impossible", 4, map[string]string{"berth.dev/gpu-models": "NVIDIA-H100-80GB-HBM3"})))
	shared.Pending(t, "impossible", "no candidate node for preemption")
	shared.Pod(t, "on-small") // it is there
}

// bindsForHAMi plays the part of HAMi's device plugin, which serves the pod that the node's lock names.
func bindsForHAMi(t *testing.T, shared *box.Box) {
	part := func(name string) *v1.Pod {
		return in("hami", with(gpuPod(name, 1, nil), map[v1.ResourceName]string{"nvidia.com/gpumem": "6000"}))
	}
	place(t, shared, part("hami-1"))
	if got := shared.Pod(t, "hami-1").Annotations["hami.io/vgpu-devices-to-allocate"]; got != "GPU-a,NVIDIA,6000,0:;" {
		t.Errorf("devices of the first pod: %q", got)
	}
	lock := func() string {
		node, err := shared.Client.CoreV1().Nodes().Get(t.Context(), "hami-0", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return node.Annotations["hami.io/mutex.lock"]
	}
	shared.Create(t, part("hami-2"))
	shared.Await(t, "the second pod to be promised its device", func(context.Context) (bool, error) {
		return strings.HasSuffix(lock(), ",default,hami-1"), nil
	})
	if _, err := shared.Client.CoreV1().Nodes().Patch(t.Context(), "hami-0", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"hami.io/mutex.lock":null}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	shared.Bound(t, "hami-2", "")
	if held := lock(); !strings.HasSuffix(held, ",default,hami-2") {
		t.Errorf("the node's lock is %q, want that of the second pod", held)
	}
	// 16,384 MiB have no room for 6,000 more.
	shared.Create(t, part("hami-3"))
	shared.Pending(t, "hami-3", "GPU")
}

// bindsWithClaims asks for the only device of its kind on a node, by a claim and by a resource that a class stands in
// for.
func bindsWithClaims(t *testing.T, shared *box.Box) {
	api := shared.Client.ResourceV1()
	for driver, extended := range map[string]*string{"gpu.nvidia.com": nil, "gpu.amd.com": ptr.To("amd.com/gpu")} {
		class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: resourcev1.DeviceClassSpec{
			ExtendedResourceName: extended,
			Selectors:            []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "` + driver + `"`}}},
		}}
		if _, err := api.DeviceClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: ptr.To("claims-0"), Pool: resourcev1.ResourcePool{Name: driver, Generation: 1,
				ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{
				Name: "gpu-0",
				Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
					"productName": {StringValue: ptr.To("NVIDIA A100-SXM4-80GB")}, "type": {StringValue: ptr.To("gpu")}},
				Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}},
			}},
		}}
		if _, err := api.ResourceSlices().Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	claiming := func(name string) *v1.Pod {
		claim := objects.ClaimOf(name, objects.Request("gpus", "gpu.nvidia.com", 1))
		if _, err := api.ResourceClaims("default").Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		return objects.UseClaim(in("claims", gpuPod(name, 0, map[string]string{"berth.dev/gpu-memory-min": "40Gi"})), name)
	}
	byResource := func(name string) *v1.Pod {
		return in("claims", with(gpuPod(name, 0, nil), map[v1.ResourceName]string{"amd.com/gpu": "1"}))
	}
	place(t, shared, claiming("by-claim"))
	place(t, shared, byResource("by-resource"))
	shared.Create(t, claiming("by-claim-2"))
	shared.Create(t, byResource("by-resource-2"))
	shared.Pending(t, "by-claim-2", "nodes are available")
	shared.Pending(t, "by-resource-2", "nodes are available")
}
