package plugins_test

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/test/harness/box"
)

const sharedPair = `shapes:
- {name: shared, count: 1, labels: {berth.dev/gpu-mode: shared, nvidia.com/gpu.product: Tesla-T4, nvidia.com/gpu.count: "2"}, allocatable: {cpu: "16", memory: 64Gi, nvidia.com/gpu: "2"}}
`

// testNativeShares is about groups of the scheduler's core on a node of two GPUs, whose members use more than half of a
// GPU each.
func testNativeShares(t *testing.T, b *box.Box) {
	g := &gpus{b.Part(t, "shares", sharedPair)}
	share := func(name string) *v1.Pod { return gpuPod(name, nil, strs{"alibabacloud.com/gpu-milli": "600"}) }
	t.Run("a group of more shares than fit waits as a whole", func(t *testing.T) {
		nativeGroup(t, g.Box, "four", 4, share)
		g.AwaitPods(t, "a member to be told why", func(pods []*v1.Pod) (bool, error) {
			return slices.ContainsFunc(pods, func(pod *v1.Pod) bool { return box.Reason(pod) != "" }), nil
		})
		g.NoneBound(t, numbered("four", 4)...)
	})
	t.Run("one that fits starts on devices of its own", func(t *testing.T) {
		nativeGroup(t, g.Box, "two", 2, share)
		used := map[int]bool{}
		for _, name := range numbered("two", 2) {
			g.Bound(t, name, "")
			for _, device := range gpuview.AssignedDevices(g.Pod(t, name)) {
				used[device] = true
			}
		}
		if len(used) != 2 {
			t.Errorf("the pods were told devices %v, want one each", used)
		}
	})
}
