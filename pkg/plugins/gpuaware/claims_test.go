package gpuaware

import (
	"fmt"
	"strings"
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

func TestNodesThatServeClaimsAreFilteredByTheirFreeDevices(t *testing.T) {
	t.Parallel()
	tainted := gpuSlice("c", 2, "NVIDIA A100-SXM4-80GB", "80Gi")
	tainted.Spec.Devices[0].Taints = []resourcev1.DeviceTaint{{Key: "broken",
		Effect: resourcev1.DeviceTaintEffectNoSchedule}}
	known := []runtime.Object{
		gpuClass(), bareNode("a"), bareNode("b"), bareNode("c"), bareNode("none"),
		gpuSlice("a", 8, "NVIDIA A100-SXM4-80GB", "80Gi"), gpuSlice("b", 4, "Tesla T4", "15Gi"), tainted,
		claimOf("busy", "a", "gpu-0", "gpu-1", "gpu-2"),
	}
	for _, tc := range []struct {
		name        string
		gpus        string
		annotations strs
		nodes       []string
		reasons     []string
	}{
		{"five are free on the large node", "5", nil, []string{"a"}, nil},
		{"six are not", "6", nil, nil, []string{"1 node(s) with too few free GPUs (need 6, have 5)",
			"1 node(s) with too few GPUs (need 6, have 4)", "1 node(s) without GPUs"}},
		{"a tainted device is not counted", "2", strs{"berth.dev/gpu-memory-min": "40Gi"}, []string{"a"}, nil},
		{"models are read from attributes", "1", strs{"berth.dev/gpu-models": "Tesla-T4"}, []string{"b"}, nil},
		{"so is memory", "1", strs{"berth.dev/gpu-memory-min": "100Gi"}, nil,
			[]string{"node(s) with too little GPU memory (need 102400 MiB per GPU, have 81920)"}},
		{"NVLink comes with the product", "4", strs{"berth.dev/gpu-interconnect": "required"}, []string{"a"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, gpuOnly(alone(defaultArgs())), known...)
			awaitDRA(t, h)
			_, scores, err := h.evaluate(t, h, podObject("p", strs{"nvidia.com/gpu": tc.gpus}, tc.annotations))
			var nodes []string
			for _, s := range scores {
				nodes = append(nodes, s.Name)
			}
			if strings.Join(nodes, ",") != strings.Join(tc.nodes, ",") {
				t.Errorf("nodes = %v, want %v (%v)", nodes, tc.nodes, err)
			}
			for _, want := range tc.reasons {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v\nlacks %q", err, want)
				}
			}
		})
	}
}

// awaitDRA waits until the scheduler knows the device class and all slices and claims that the API has.
func awaitDRA(t *testing.T, h *harness) {
	t.Helper()
	api := h.client.ResourceV1()
	slices, err := api.ResourceSlices().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claims, err := api.ResourceClaims(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	allocated := 0
	for i := range claims.Items {
		if a := claims.Items[i].Status.Allocation; a != nil {
			allocated += len(a.Devices.Results)
		}
	}
	// Which devices are allocated is counted behind the informer's back, a moment after it has synced.
	await.Until(t, "the claims and slices of the API", func() bool {
		seen, err1 := h.DRA.ResourceSlices().ListWithDeviceTaintRules()
		taken, err2 := h.DRA.ResourceClaims().ListAllAllocatedDevices()
		return err1 == nil && err2 == nil && len(seen) == len(slices.Items) && len(taken) == allocated &&
			h.DRA.DeviceClassResolver().GetDeviceClass("nvidia.com/gpu") != nil
	})
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
	awaitDRA(t, h)
	if _, _, err := h.evaluate(t, h, podObject("fits", strs{"nvidia.com/gpu": "2"}, nil)); err != nil {
		t.Errorf("two of four are free: %v", err)
	}
	if _, _, err := h.evaluate(t, h, podObject("not", strs{"nvidia.com/gpu": "3"}, nil)); err == nil {
		t.Error("a device of a pod that has no claim yet was given out")
	}
}

func TestClaimsOfThePodsOwn(t *testing.T) {
	t.Parallel()
	claim := objects.ClaimOf("mine", objects.Request("gpus", gpuDriver, 3))
	h := newHarness(t, gpuOnly(alone(defaultArgs())), gpuClass(), claim, bareNode("a"), bareNode("b"),
		gpuNodeObject("plugin", 8, "Tesla-T4"),
		gpuSlice("a", 4, "Tesla T4", "15Gi"), gpuSlice("b", 2, "Tesla T4", "15Gi"))
	await.Until(t, "the claims to be told", func() bool {
		_, err := h.DRA.ResourceClaims().Get("default", "mine")
		_, missing := h.DRA.DeviceClasses().Get(gpuDriver)
		return err == nil && missing == nil
	})
	pod := claiming("p", "mine")
	_, scores, err := h.evaluate(t, h, pod)
	if err != nil || len(scores) != 1 || scores[0].Name != "a" {
		t.Errorf("scores = %v (%v), want node a alone: b has two devices, plugin serves no claims", scores, err)
	}
	if _, status := h.plugin.SignPod(t.Context(), pod); status.IsSuccess() {
		t.Error("a pod with claims of its own was signed")
	}
}
