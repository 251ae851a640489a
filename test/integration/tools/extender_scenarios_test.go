package tools_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
