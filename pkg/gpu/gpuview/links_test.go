package gpuview

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/require"
)

// Of four GPUs in two linked pairs, the device plugin is taken to give out those that are connected best.
func TestLinkedGPUsAreFreeUntilPodsHoldOneOfEachPair(t *testing.T) {
	t.Parallel()
	links, err := EncodeLinks([]Link{{0, 1, "NV12"}, {0, 2, "SYS"}, {2, 3, "NV12"}})
	require.NoError(t, err)
	keys := DefaultKeys()
	pair := &gpu.Request{Resource: "nvidia.com/gpu", Count: 2, Milli: gpu.WholeMilli,
		Interconnect: gpu.InterconnectRequired}
	for name, tc := range map[string]struct {
		offered strs
		held    int
		linked  bool
	}{
		"one pair is left whole":                    {strs{"nvidia.com/gpu": "4"}, 2, true},
		"one of a pair is free":                     {strs{"nvidia.com/gpu": "4"}, 3, false},
		"some GPUs are offered under another name":  {strs{"nvidia.com/gpu": "4", "nvidia.com/gpu.shared": "16"}, 0, false},
		"a GPU that the kubelet offers not is last": {strs{"nvidia.com/gpu": "3"}, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := gpuNode(tc.offered, strs{"nvidia.com/gpu.count": "4"}, strs{wellknown.GPULinksKey: links})
			seen, bad := keys.ReadGPUNode(node)
			if len(bad) > 0 {
				t.Fatal(bad)
			}
			var pods []*v1.Pod
			if tc.held > 0 {
				pods = append(pods, gpuPod(strs{"nvidia.com/gpu": fmt.Sprint(tc.held)}, nil))
			}
			info := framework.NewNodeInfo(pods...)
			info.SetNode(node)
			if got := gpu.Fit(keys.Inventory(seen, info, nil, ""), pair).Cause == gpu.Fits; got != tc.linked {
				t.Errorf("two linked GPUs: %v, want %v", got, tc.linked)
			}
		})
	}
}
