package gpuaware

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"berth.dev/berth/test/harness/await"
	"berth.dev/berth/test/harness/objects"
)

const gpuDriver = "gpu.nvidia.com"

// gpuClass is NVIDIA's device class, standing in for its extended resource.
func gpuClass() *resourcev1.DeviceClass {
	return &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: gpuDriver},
		Spec: resourcev1.DeviceClassSpec{
			ExtendedResourceName: ptr.To("nvidia.com/gpu"),
			Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
				Expression: `device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"`,
			}}},
		},
	}
}

// gpuSlice offers n GPUs and one MIG slice, which the class does not select, on a node.
func gpuSlice(node string, n int, product string, memory string) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node + "-gpus", UID: types.UID(node + "-gpus"), ResourceVersion: "1"},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: gpuDriver, NodeName: ptr.To(node), Pool: resourcev1.ResourcePool{Name: node, Generation: 1,
				ResourceSliceCount: 1},
		},
	}
	device := func(name, kind string) resourcev1.Device {
		return resourcev1.Device{
			Name: name,
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"type": {StringValue: ptr.To(kind)}, "productName": {StringValue: ptr.To(product)},
				"architecture": {StringValue: ptr.To("Ampere")}, "cudaComputeCapability": {VersionValue: ptr.To("8.0.0")},
			},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse(memory)}},
		}
	}
	for i := range n {
		s.Spec.Devices = append(s.Spec.Devices, device(fmt.Sprintf("gpu-%d", i), "gpu"))
	}
	s.Spec.Devices = append(s.Spec.Devices, device("mig-0", "mig"))
	return s
}

// claimOf is a claim to which devices of a node's pool are allocated.
func claimOf(name, node string, devices ...string) *resourcev1.ResourceClaim {
	return objects.Allocate(objects.ClaimOf(name), gpuDriver, node, devices...)
}

// bareNode is a node whose kubelet offers no GPU.
func bareNode(name string) *v1.Node {
	n := cpuNode(name)
	n.Labels[v1.LabelHostname] = name
	return n
}

func TestSimulatedPodsHoldDevicesOfClaims(t *testing.T) {
	t.Parallel()
	known := []runtime.Object{gpuClass(), bareNode("a"), gpuSlice("a", 4, "Tesla T4", "15Gi"),
		claimOf("busy", "a", "gpu-0")}
	for _, name := range []string{"claimed", "simulated"} {
		p := podObject(name, strs{"nvidia.com/gpu": "1"}, nil)
		p.Spec.NodeName = "a"
		known = append(known, p)
	}
	h := newHarness(t, gpuOnly(alone(defaultArgs())), known...)
	await.Until(t, "the class, the devices and the claim", func() bool {
		taken, err := h.DRA.ResourceClaims().ListAllAllocatedDevices()
		seen, err2 := h.DRA.ResourceSlices().ListWithDeviceTaintRules()
		return err == nil && err2 == nil && len(taken) == 1 && len(seen) == 1 &&
			h.DRA.DeviceClassResolver().GetDeviceClass("nvidia.com/gpu") != nil
	})
	if _, _, err := h.evaluate(t, h, podObject("fits", strs{"nvidia.com/gpu": "2"}, nil)); err != nil {
		t.Errorf("two of four are free: %v", err)
	}
	if _, _, err := h.evaluate(t, h, podObject("not", strs{"nvidia.com/gpu": "3"}, nil)); err == nil {
		t.Error("a device of a pod that has no claim yet was given out")
	}
}
