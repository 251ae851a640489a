package gpuaware

import (
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
			Selectors: objects.Selectors(`device.driver == "gpu.nvidia.com" && ` +
				`device.attributes["gpu.nvidia.com"].type == "gpu"`),
		},
	}
}

// gpuSlice offers n GPUs and one MIG slice, which the class does not select, on a node.
func gpuSlice(node string, n int, product string, memory string) *resourcev1.ResourceSlice {
	attributes := map[string]string{"productName": product, "architecture": "Ampere"}
	devices := objects.GPUs(n+1, attributes, func(d *resourcev1.Device) {
		d.Attributes["cudaComputeCapability"] = resourcev1.DeviceAttribute{VersionValue: ptr.To("8.0.0")}
		d.Capacity["memory"] = resourcev1.DeviceCapacity{Value: resource.MustParse(memory)}
	})
	devices[n].Name = "mig-0"
	devices[n].Attributes["type"] = resourcev1.DeviceAttribute{StringValue: ptr.To("mig")}
	slice := objects.Slice(gpuDriver, node, devices...)
	slice.Name, slice.UID, slice.ResourceVersion = node+"-gpus", types.UID(node+"-gpus"), "1"
	return slice
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
