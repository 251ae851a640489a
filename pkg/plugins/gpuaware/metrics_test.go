package gpuaware

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/legacyregistry"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/test/harness/await"
	"berth.dev/berth/test/harness/require"
)

func TestFleetCountsGPUsByModel(t *testing.T) {
	t.Parallel()
	down := gpuNodeObject("down", 4, "NVIDIA-A10")
	down.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("3")
	whole := podObject("whole", strs{"nvidia.com/gpu": "2"}, nil)
	whole.Spec.NodeName = "down"
	part := assignedTo(podObject("part", nil, strs{"gpu-fraction": "0.25", "runai-gpu": "1"}), "shared", 1, 250, 4096)
	h := newHarness(t, alone(defaultArgs()), down, sharedNode("shared", 2), cpuNode("cpu"), whole, part)
	fleet := h.plugin.shared
	var got map[string]count
	want := map[string]count{
		"NVIDIA-A10": {total: 4, unhealthy: 1, freeMilli: 1000, allocatedMilli: 2000},
		"Tesla-T4": {total: 2, freeMilli: 1750, allocatedMilli: 250, freeOnPartlyTaken: 750,
			freeMemMiB: 16384 + 12288, freeMemOnPartlyTaken: 12288},
	}
	await.Until(t, "the fleet to be counted", func() bool {
		got = fleet.byModel()
		return cmp.Equal(want, got, cmp.AllowUnexported(count{}))
	})
	require.NoError(t, h.client.CoreV1().Pods("default").Delete(h.ctx, "whole", metav1.DeleteOptions{}))
	await.Until(t, "GPUs to be free", func() bool { return fleet.byModel()["NVIDIA-A10"].freeMilli == 3000 })
	require.NoError(t, h.client.CoreV1().Nodes().Delete(h.ctx, "down", metav1.DeleteOptions{}))
	await.Until(t, "the node to be gone", func() bool { _, there := fleet.byModel()["NVIDIA-A10"]; return !there })
}

func TestTheGPUsOfANodeWithTwoMakersAreCountedApart(t *testing.T) {
	t.Parallel()
	mixed := gpuNodeObject("mixed", 4, "NVIDIA-A10")
	mixed.Labels["amd.com/gpu.product-name"] = "AMD_Instinct_MI300X_OAM"
	mixed.Status.Allocatable["amd.com/gpu"] = resource.MustParse("2")
	onAMD := podObject("amd", strs{"amd.com/gpu": "1"}, nil)
	onAMD.Spec.NodeName = "mixed"
	h := newHarness(t, alone(defaultArgs()), mixed, onAMD)
	want := map[string]count{
		"NVIDIA-A10":              {total: 4, freeMilli: 4000},
		"AMD_Instinct_MI300X_OAM": {total: 2, freeMilli: 1000, allocatedMilli: 1000},
	}
	await.Until(t, "both makers to be counted", func() bool {
		return cmp.Equal(want, h.plugin.shared.byModel(), cmp.AllowUnexported(count{}))
	})
	// The supply, by which placements are judged, counts both as well.
	if _, _, err := h.evaluate(t, h, h.add(t, podObject("next", strs{"nvidia.com/gpu": "1"}, nil))); err != nil {
		t.Fatal(err)
	}
	totals := &h.plugin.shared.views.totals
	totals.mu.Lock()
	parts := totals.nodes["mixed"].parts
	totals.mu.Unlock()
	if len(parts) != 2 || parts[0].IdleMilli != 4000 || parts[1].IdleMilli != 1000 {
		t.Errorf("the supply has %+v of the node, want 4000 and 1000 milli-GPU", parts)
	}
	totals.set("mixed", nil)
	totals.mu.Lock()
	defer totals.mu.Unlock()
	if len(totals.nodes)+len(totals.capacity) > 0 {
		t.Errorf("the supply has %v of no node", totals.capacity)
	}
}

func TestUnusedGPUsAreExpectedOnceTheMixIsKnown(t *testing.T) {
	t.Parallel()
	h := newHarness(t, alone(defaultArgs()), gpuNodeObject("n", 8, "Tesla-T4"))
	for i := range 200 {
		h.plugin.shared.runs(podObject(fmt.Sprint(i), strs{"nvidia.com/gpu": "3"}, nil))
	}
	if got := h.plugin.shared.byModel()["Tesla-T4"].expectedUnusedMilli; got != 2000 {
		t.Errorf("expected unused = %v milli-GPU, want 2000: work of three GPUs leaves two of eight", got)
	}
}

func TestMetricsAreOnTheEndpointOfTheScheduler(t *testing.T) { //nolint:paralleltest // it is that of the process
	h := newHarness(t, alone(defaultArgs()), gpuNodeObject("n", 8, "Only-Here"))
	// A profile that reads the same node under another name counts it no second time.
	h.newFramework(t, alone(defaultArgs(func(a *config.GPUAwareArgs) { a.Resources = []string{"nvidia.com/gpu"} })))
	want := map[string]float64{"berth_gpu_allocated": 0, "berth_gpu_devices": 8, "berth_gpu_fragmentation_ratio": 0,
		"berth_gpu_free": 8, "berth_gpu_memory_fragmentation_ratio": 0, "berth_gpu_expected_unused": 0,
		"berth_gpu_unhealthy": 0}
	await.Until(t, "the metrics", func() bool {
		families, err := legacyregistry.DefaultGatherer.Gather()
		require.NoError(t, err)
		got := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if strings.HasPrefix(f.GetName(), "berth_gpu_") && len(m.GetLabel()) == 1 {
					got[f.GetName()] += m.GetGauge().GetValue()
				}
			}
		}
		return cmp.Equal(want, got)
	})
}
