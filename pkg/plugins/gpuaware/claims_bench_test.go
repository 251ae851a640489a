package gpuaware

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/ptr"

	"berth.dev/berth/test/harness/await"
	"berth.dev/berth/test/harness/objects"
)

// BenchmarkClaims filters and scores 1,000 nodes of 8 devices, half of them allocated, for pods with a claim: of one
// shape, as nearly all are, and each of a shape of its own, for which the allocator has to look at all devices.
func BenchmarkClaims(b *testing.B) {
	const nodes = 1000
	known := []runtime.Object{gpuClass()}
	for i := range nodes {
		name := fmt.Sprintf("node-%04d", i)
		slice := gpuSlice(name, 8, "NVIDIA A100-SXM4-80GB", "80Gi")
		if i%2 == 0 {
			slice.Spec.Devices = slice.Spec.Devices[:8] // the other half of the nodes have a slice of a GPU, too
		}
		known = append(known, bareNode(name), slice, claimOf("held-"+name, name, "gpu-0", "gpu-1", "gpu-2", "gpu-3"))
	}
	claim := func(name, expression string) *resourcev1.ResourceClaim {
		return objects.ClaimOf(name, objects.Request("gpus", gpuDriver, 2, objects.Matching(expression)))
	}
	const shapes = 300 // more than are remembered
	known = append(known, claim("alike", `device.driver == "gpu.nvidia.com"`))
	for i := range shapes {
		known = append(known, claim(fmt.Sprint("own-", i), fmt.Sprintf(`device.driver != "other-%d"`, i)))
	}
	h := newHarness(b, gpuOnly(alone(defaultArgs())), known...)
	await.Until(b, "the claims", func() bool {
		taken, err := h.DRA.ResourceClaims().ListAllAllocatedDevices()
		seen, err2 := h.DRA.ResourceSlices().ListWithDeviceTaintRules()
		return err == nil && err2 == nil && len(taken) == 4*nodes && len(seen) == nodes
	})
	if err := h.Cache.UpdateSnapshot(h.logger, h.Snapshot); err != nil {
		b.Fatal(err)
	}
	infos, err := h.Snapshot.NodeInfos().List()
	if err != nil {
		b.Fatal(err)
	}
	cycle := func(b *testing.B, name string) {
		b.Helper()
		pod := podObject("p", nil, nil)
		if name != "" {
			pod.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpus", ResourceClaimName: ptr.To(name)}}
		}
		state := framework.NewCycleState()
		if _, status := h.plugin.PreFilter(h.ctx, state, pod, infos); !status.IsSuccess() && !status.IsSkip() {
			b.Fatal(status)
		}
		for _, info := range infos {
			if status := h.plugin.Filter(h.ctx, state, pod, info); !status.IsSuccess() {
				b.Fatal(status)
			}
			if _, status := h.plugin.Score(h.ctx, state, pod, info); !status.IsSuccess() {
				b.Fatal(status)
			}
		}
	}
	b.Run("no claim", func(b *testing.B) {
		for b.Loop() {
			cycle(b, "")
		}
	})
	b.Run("one shape", func(b *testing.B) {
		cycle(b, "alike")
		for b.Loop() {
			cycle(b, "alike")
		}
	})
	b.Run("many shapes", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			cycle(b, fmt.Sprint("own-", i%shapes))
		}
	})
	b.Run("state", func(b *testing.B) {
		for b.Loop() {
			h.plugin.cluster.claims.Now()
		}
	})
}
