package gpuaware

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/signals"
	"berth.dev/berth/test/harness/await"
	"berth.dev/berth/test/harness/objects"
	"berth.dev/berth/test/harness/require"
)

// claiming is a pod with the claim c.
func claiming(name string) *v1.Pod {
	return objects.UseClaim(podObject(name, nil, nil), "c")
}

// plainClass selects GPUs and stands in for no extended resource.
func plainClass(name string) *resourcev1.DeviceClass {
	class := gpuClass()
	class.Name, class.Spec.ExtendedResourceName = name, nil
	return class
}

func TestClaimsAreDemand(t *testing.T) {
	t.Parallel()
	parts := gpuSlice("part", 2, "NVIDIA A100-SXM4-80GB", "80Gi")
	for i := range parts.Spec.Devices {
		objects.ByMemory(&parts.Spec.Devices[i])
	}
	nic := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "nic"},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{
			{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "nic.example.com"`}},
		}}}
	nics := gpuSlice("part", 1, "NIC", "1Gi")
	nics.Name, nics.UID, nics.Spec.Driver = "nics", "nics", "nic.example.com"
	all := func(r *resourcev1.ExactDeviceRequest) {
		r.AllocationMode, r.Count = resourcev1.DeviceAllocationModeAll, 0
	}
	for name, tc := range map[string]struct {
		claim    *resourcev1.ResourceClaim
		resource string
		want     gpu.Request
		unknown  bool
	}{
		"whole GPUs": {claim: objects.ClaimOf("c", objects.Request("a", "whole", 3)),
			want: gpu.Request{Count: 3, Milli: 1000}},
		"a share of one by memory": {claim: objects.ClaimOf("c", objects.Request("a", "part", 1, objects.OfMemory(20))),
			want: gpu.Request{Count: 1, Milli: 250}},
		"several requests": {claim: objects.ClaimOf("c", objects.Request("a", "whole", 1), objects.Request("b", "whole", 2)),
			want: gpu.Request{Count: 3, Milli: 1000}},
		"all of a node": {claim: objects.ClaimOf("c", objects.Request("a", "whole", 0, all)),
			want: gpu.Request{Count: 4, Milli: 1000}},
		"the first that there is": {claim: objects.ClaimOf("c",
			resourcev1.DeviceRequest{Name: "a", FirstAvailable: []resourcev1.DeviceSubRequest{
				{Name: "huge", DeviceClassName: "whole", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 16},
				{Name: "pair", DeviceClassName: "whole", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 2},
			}}), want: gpu.Request{Count: 2, Milli: 1000}},
		"a resource named after a class": {resource: "deviceclass.resource.kubernetes.io/whole",
			want: gpu.Request{Count: 2, Milli: 1000}},
		"devices of another kind": {claim: objects.ClaimOf("c", objects.Request("a", "nic", 1)),
			unknown: true},
		"more than any node has":      {claim: objects.ClaimOf("c", objects.Request("a", "whole", 9)), unknown: true},
		"a class that does not exist": {claim: objects.ClaimOf("c", objects.Request("a", "gone", 1)), unknown: true},
		"a claim that is allocated": {claim: claimOf("c", "whole", "gpu-1", "gpu-2"),
			want: gpu.Request{Count: 2, Milli: 1000}},
		"a selector that cannot be read": {claim: objects.ClaimOf("c",
			objects.Request("a", "whole", 1, objects.Matching("device."))), unknown: true},
		"a selector that excludes no device": {claim: objects.ClaimOf("c",
			objects.Request("a", "whole", 1, objects.Matching("true"))), want: gpu.Request{Count: 1, Milli: 1000}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole, part := plainClass("whole"), plainClass("part")
			selecting := func(c *resourcev1.DeviceClass, several bool) {
				c.Spec.Selectors[0].CEL.Expression += fmt.Sprintf(" && device.allowMultipleAllocations == %t", several)
			}
			selecting(whole, false)
			selecting(part, true)
			made := []runtime.Object{whole, part, nic.DeepCopy(), nics.DeepCopy(), bareNode("whole"), bareNode("part"),
				parts.DeepCopy(), gpuSlice("whole", 4, "Tesla T4", "15Gi")}
			pod := podObject("p", nil, nil)
			if tc.claim != nil {
				made = append(made, tc.claim.DeepCopy())
				pod = objects.UseClaim(pod, "c")
			} else {
				pod.Spec.Containers[0].Resources.Requests[v1.ResourceName(tc.resource)] = resource.MustParse("2")
			}
			h := newHarness(t, gpuOnly(alone(defaultArgs())), made...)
			want, known := tc.want, !tc.unknown
			var got gpu.Request
			var ok bool
			await.Until(t, "slices, classes and the claim to be seen", func() bool {
				seen, err := h.DRA.ResourceSlices().ListWithDeviceTaintRules()
				classes, err2 := h.DRA.DeviceClasses().List()
				if err != nil || err2 != nil || len(seen) != 3 || len(classes) != 3 {
					return false
				}
				if tc.claim != nil {
					if _, err := h.DRA.ResourceClaims().Get("default", "c"); err != nil {
						return false
					}
				} else if h.DRA.DeviceClassResolver().GetDeviceClass(v1.ResourceName(tc.resource)) == nil {
					return false
				}
				if claimed := h.plugin.shared.claims.Pod(h.ctx, pod); claimed != nil {
					got, ok = claimed.Request()
				}
				return true
			})
			if diff := cmp.Diff(want, got); diff != "" || ok != known {
				t.Errorf("known %t, want %t; request (-want +got):\n%s", ok, known, diff)
			}
		})
	}
}

// Slices that come while pods arrive are seen by both, which hold locks of each other's.
func TestSlicesComeWhilePodsArrive(t *testing.T) {
	t.Parallel()
	h := newHarness(t, gpuOnly(alone(defaultArgs())), plainClass("whole"),
		objects.ClaimOf("c", objects.Request("a", "whole", 1)))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 200 {
			_, _, _ = h.evaluate(t, h, claiming("p"))
			h.plugin.shared.byModel()
		}
	}()
	const nodes = 20
	for i := range nodes {
		name := fmt.Sprint("n", i)
		if _, err := h.client.CoreV1().Nodes().Create(h.ctx, bareNode(name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := h.client.ResourceV1().ResourceSlices().Create(h.ctx, gpuSlice(name, 4, "Tesla T4", "15Gi"),
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	await.Next(t, done, "pods to arrive")
	await.Until(t, "the GPUs of all nodes to be counted", func() bool {
		return h.plugin.shared.byModel()["Tesla-T4"].total == 4*nodes
	})
}

func TestDevicesThatAreClaimedAreCounted(t *testing.T) {
	t.Parallel()
	parts := gpuSlice("part", 2, "Tesla T4", "16Gi")
	parts.Spec.Devices = parts.Spec.Devices[:2]
	for i := range parts.Spec.Devices {
		objects.ByMemory(&parts.Spec.Devices[i])
		parts.Spec.Devices[i].Capacity["memory"] = resourcev1.DeviceCapacity{Value: resource.MustParse("16Gi")}
	}
	share := claimOf("share", "part", "gpu-0")
	result := &share.Status.Allocation.Devices.Results[0]
	result.ShareID = ptr.To(types.UID("11111111-1111-1111-1111-111111111111"))
	result.ConsumedCapacity = map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse("4Gi")}
	whole := gpuSlice("whole", 4, "NVIDIA A100-SXM4-80GB", "80Gi")
	whole.Spec.Devices[3].Taints = []resourcev1.DeviceTaint{{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoExecute}}
	h := newHarness(t, gpuOnly(alone(defaultArgs())), bareNode("part"), bareNode("whole"), parts, whole, share,
		claimOf("held", "whole", "gpu-1"))
	want := map[string]count{
		"NVIDIA-A100-SXM4-80GB": {total: 4, unhealthy: 1, freeMilli: 2000, allocatedMilli: 1000},
		"Tesla-T4":              {total: 2, freeMilli: 1750, allocatedMilli: 250, freeOnPartlyTaken: 750},
	}
	var got map[string]count
	defer func() {
		if t.Failed() {
			t.Log(cmp.Diff(want, got, cmp.AllowUnexported(count{})))
		}
	}()
	await.Until(t, "the claim to be counted", func() bool {
		got = h.plugin.shared.byModel()
		return cmp.Equal(want, got, cmp.AllowUnexported(count{}))
	})
	require.NoError(t, h.client.ResourceV1().ResourceClaims("default").Delete(h.ctx, "held", metav1.DeleteOptions{}))
	await.Until(t, "its GPUs to be free",
		func() bool { return h.plugin.shared.byModel()["NVIDIA-A100-SXM4-80GB"].freeMilli == 3000 })
}

func TestANodeThatWouldGiveAFaultyDeviceIsTheLastChoice(t *testing.T) {
	t.Parallel()
	named := func(node string, n int) *resourcev1.ResourceSlice {
		s := gpuSlice(node, n, "Tesla T4", "16Gi")
		for i := range s.Spec.Devices {
			s.Spec.Devices[i].Attributes["uuid"] = resourcev1.DeviceAttribute{StringValue: ptr.To(fmt.Sprintf("GPU-%s-%d", node,
				i))}
		}
		return s
	}
	made := func() []runtime.Object {
		return []runtime.Object{
			plainClass("whole"), bareNode("small"), bareNode("large"), named("small", 2), named("large", 8),
			objects.ClaimOf("c", objects.Request("a", "whole", 1)),
		}
	}
	// The exporter's index is not that of the slice: only the UUID tells that it is the first that would be given.
	server := prometheusStub(t, nil, []string{fault("small", 7, "GPU-small-0")})
	healthy := newHarness(t, gpuOnly(alone(defaultArgs())), made()...)
	faulty := newHarness(t, gpuOnly(alone(defaultArgs(measuredBy(server)))), made()...)
	for h, want := range map[*harness]string{healthy: "small", faulty: "large"} {
		awaitClaim(t, h, 2)
		if h == faulty {
			awaitSignals(t, h, func(s *signals.GPUSnapshot) bool { return len(s.Faults("small", time.Now())) > 0 })
		}
		_, scores, err := h.evaluate(t, h, claiming("p"))
		if err != nil || len(scores) != 2 {
			t.Fatalf("scores = %v (%v), want both nodes: the allocator has devices on both", scores, err)
		}
		best := scores[0]
		if scores[1].TotalScore > best.TotalScore {
			best = scores[1]
		}
		if best.Name != want {
			t.Errorf("the best node is %s, want %s", best.Name, want)
		}
	}
}

// awaitClaim waits until the scheduler knows the class "whole", the claim "c", and a number of nodes with devices.
func awaitClaim(t *testing.T, h *harness, nodes int) {
	t.Helper()
	await.Until(t, "the scheduler to know the class, the claim and the devices", func() bool {
		state := h.plugin.shared.claims.Now()
		if state == nil {
			return false
		}
		_, missing := h.DRA.DeviceClasses().Get("whole")
		_, gone := h.DRA.ResourceClaims().Get("default", "c")
		return missing == nil && gone == nil && len(slices.Collect(state.Names())) == nodes
	})
}

func TestDeviceDriversAreDriverNames(t *testing.T) {
	t.Parallel()
	for driver, good := range map[string]bool{"gpu.example.com": true, "": false, "GPU": false,
		"gpu.example.com/gpu": false} {
		_, err := readArgs(defaultArgs(func(a *config.GPUAwareArgs) { a.Drivers = []string{driver} }), "p")
		if (err == nil) != good || !good && !strings.Contains(err.Error(), "deviceDrivers[0]") {
			t.Errorf("driver %q: %v", driver, err)
		}
	}
}
