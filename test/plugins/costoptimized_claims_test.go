package plugins_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/test/harness/objects"
)

// claimDriver is one of a site, which the args name.
const claimDriver = "gpu.example.com"

func claimDrivers(a *config.CostOptimizedArgs) { a.Drivers = []string{claimDriver} }

// claimedGPUs are a node whose eight GPUs stand in a slice, one of them allocated to a claim, and a claim of two GPUs.
func claimedGPUs() []runtime.Object {
	node := atPrice(objects.Node("dra", "cpu", "96", "memory", "1Ti"), "22.976")
	held := objects.ClaimOf("held", objects.Request("gpus", "gpu", 1))
	return []runtime.Object{
		node, objects.Slice(claimDriver, "dra", objects.GPUs(8, nil)...), objects.DeviceClass("gpu", claimDriver),
		objects.ClaimOf("mine", objects.Request("gpus", "gpu", 2)),
		objects.Allocate(held, claimDriver, "dra", "gpu-0"),
	}
}

// A node whose GPUs stand in a slice costs pods what one with a device plugin does.
func TestPricesCountGPUsThatAreClaimed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		filler := objects.Pod("filler", "nvidia.com/gpu", "1").Node("plugin").Obj()
		b := bill(t, claimDrivers, append(claimedGPUs(), priced("plugin", "22.976"), filler)...)
		pass(minute)
		asks := func(gpus ...string) *st.PodWrapper {
			return objects.Pod("p", append(gpus, "cpu", "8", "memory", "8Gi")...)
		}
		byClaim, byPlugin := b.terms(t, objects.UseClaim(asks().Obj(), "mine"))["dra"], b.terms(t,
			asks("nvidia.com/gpu", "2").Obj())["plugin"]
		if byClaim["share"] == 0 || byClaim["share"] != byPlugin["share"] {
			t.Errorf("two GPUs that are claimed cost %v, two of a device plugin %v", byClaim, byPlugin)
		}
		// A pod that takes all of the CPU strands the seven GPUs that are free, at two dollars each.
		for node, terms := range b.terms(t, objects.Pod("hog", "cpu", "96").Obj()) {
			if terms["stranded GPU"] != 14 {
				t.Errorf("node %s: GPUs for %g dollars are stranded, want 14", node, terms["stranded GPU"])
			}
		}
	})
}
