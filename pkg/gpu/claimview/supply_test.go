package claimview

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/test/harness/objects"
	"berth.dev/berth/test/harness/require"
)

// A node on which the allocator of Kubernetes can serve a claim is never refused, and what one request is given is
// what was foreseen, but for requests of devices of any size.
func TestWhatTheAllocatorGivesIsForeseen(t *testing.T) {
	t.Parallel()
	parts, counters := objects.Partitions(4)
	pools := map[string][]resourcev1.Device{
		"whole": objects.GPUs(8, nil), "small": objects.GPUs(4, map[string]string{"productName": "Tesla T4"}),
		"parts": parts, "shared": objects.GPUs(4, nil, objects.ByMemory),
	}
	made := []runtime.Object{objects.DeviceClass("gpu", gpuDriver)}
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		slice := sliceOf(gpuDriver, name, 0, "1Gi")
		slice.Spec.Devices = pools[name]
		if name == "parts" {
			slice.Spec.Pool.ResourceSliceCount = 2
			sets := slice.DeepCopy()
			sets.Name, sets.UID, sets.Spec.Devices, sets.Spec.SharedCounters = "sets", "sets", nil, counters
			made = append(made, sets)
		}
		made = append(made, nodeNamed(name), slice)
	}
	w := newWorld(t, made...)
	features := dynamicresources.AllocatorFeatures(feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate))
	list, err := w.dra.ResourceSlices().ListWithDeviceTaintRules()
	require.NoError(t, err)
	read := NoSlices([]string{gpuDriver}).Read(list)
	random := rand.New(rand.NewPCG(1, 2))
	ofType := `device.attributes["gpu.nvidia.com"].type == `
	requests := []resourcev1.DeviceRequest{
		objects.Request("one", "gpu", 1, objects.Matching(ofType+`"gpu" && !device.allowMultipleAllocations`)),
		objects.Request("two", "gpu", 2, objects.Matching(ofType+`"gpu" && !device.allowMultipleAllocations`)),
		objects.Request("four", "gpu", 4, objects.Matching(ofType+`"gpu" && !device.allowMultipleAllocations`)),
		objects.Request("part", "gpu", 1, objects.Matching(ofType+`"mig"`)),
		objects.Request("share", "gpu", 1, objects.Matching(`device.allowMultipleAllocations`), objects.OfMemory(25)),
		objects.Request("any", "gpu", 1), objects.Request("six", "gpu", 6),
		{Name: "first", FirstAvailable: []resourcev1.DeviceSubRequest{
			{Name: "many", DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 6},
			{Name: "few", DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 2},
		}},
	}
	for name := range pools {
		node := read.nodes[name]
		for range 40 {
			allocated := allocation(nil, nil)
			for i := range 12 {
				claim := objects.ClaimOf(fmt.Sprint("c", i))
				for n := range 1 + random.IntN(2) {
					r := requests[random.IntN(len(requests))]
					r.Name = fmt.Sprint("r", n)
					claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, r)
				}
				allocator, err := structured.NewAllocator(t.Context(), features, *allocated, w.dra.DeviceClasses(), list,
					w.claims.compiled)
				require.NoError(t, err)
				results, err := allocator.Allocate(t.Context(), nodeNamed(name), []*resourcev1.ResourceClaim{claim})
				require.NoError(t, err)
				c := &Pod{state: &State{read: read}}
				for i := range claim.Spec.Devices.Requests {
					if r := c.readRequest(t.Context(), w.claims, &claim.Spec.Devices.Requests[i]); r != nil {
						c.own = append(c.own, r)
					}
				}
				devices := node.devicesAfter(nil, allocated)
				given, ok := supplyOf(node, devices.inventory, devices.used).first(c.requests(nil))
				if len(results) == 0 {
					continue
				}
				r, known := c.Request()
				short := gpu.Fit(devices.inventory, &r)
				if !ok && !c.Loose() && known && short.Cause != gpu.Fits {
					t.Fatalf("%s: the allocator serves %+v, and the node is refused: %s", name, claim.Spec.Devices.Requests, short)
				}
				claim.Status.Allocation = &results[0]
				alike := len(c.own) == 1 && (!c.Loose() || name != "parts")
				if want := node.given(nil, claim); alike && !slices.Equal(want, given) {
					t.Fatalf("%s: %+v is given for %+v, and %+v was foreseen", name, want, claim.Spec.Devices.Requests, given)
				}
				take(allocated, claim)
			}
		}
	}
}

func take(s *structured.AllocatedState, claim *resourcev1.ResourceClaim) {
	for _, r := range claim.Status.Allocation.Devices.Results {
		id := structured.MakeDeviceID(r.Driver, r.Pool, r.Device)
		if r.ConsumedCapacity == nil {
			s.AllocatedDevices.Insert(id)
		} else {
			s.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
		}
	}
}
