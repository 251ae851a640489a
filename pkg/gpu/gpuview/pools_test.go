package gpuview

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/test/harness/require"
)

func TestEachPodIsHeldAgainstTheResourceThatItAsksFor(t *testing.T) {
	t.Parallel()
	keys := DefaultKeys()
	node := gpuNode(strs{"nvidia.com/gpu": "4", "nvidia.com/gpu.shared": "16", "amd.com/gpu": "2"}, strs{
		"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.count": "8", "nvidia.com/gpu.replicas": "4",
		"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.vram": "192G",
	}, nil)
	read, bad := keys.ReadGPUNode(node)
	if len(bad) > 0 || read.GPUs() != 10 {
		t.Fatalf("%d GPUs, bad values %v, want 10", read.GPUs(), bad)
	}
	info := framework.NewNodeInfo(gpuPod(strs{"amd.com/gpu": "2"}, nil), gpuPod(strs{"nvidia.com/gpu.shared": "15"}, nil),
		gpuPod(strs{"nvidia.com/gpu": "1"}, nil))
	info.SetNode(node)
	for _, tc := range []struct {
		name     string
		requests strs
		model    string
		want     gpu.Cause
	}{
		{"whole GPUs", strs{"nvidia.com/gpu": "3"}, "NVIDIA-L4", gpu.Fits},
		{"more whole GPUs than are left", strs{"nvidia.com/gpu": "4"}, "NVIDIA-L4", gpu.GPUsTaken},
		{"the last time slice", strs{"nvidia.com/gpu.shared": "1"}, "NVIDIA-L4", gpu.Fits},
		{"more time slices than are left", strs{"nvidia.com/gpu.shared": "2"}, "NVIDIA-L4", gpu.GPUsTaken},
		{"GPUs of the other maker, which are taken", strs{"amd.com/gpu": "1"}, "AMD_Instinct_MI300X_OAM", gpu.GPUsTaken},
		{"GPUs of a third maker", strs{"gpu.intel.com/xe": "1"}, "NVIDIA-L4", gpu.NoGPU},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r, err := keys.PodGPURequest(gpuPod(tc.requests, nil))
			require.NoError(t, err)
			pool := read.For(&r.Request)
			inv := keys.Inventory(pool, info, nil, "")
			if reason := gpu.Fit(inv, &r.Request); reason.Cause != tc.want || inv.Model != tc.model {
				t.Errorf("%q on %s, want cause %d on %s", reason, inv.Model, tc.want, tc.model)
			}
		})
	}
}

func TestIntelMemoryIsTheSumInBytes(t *testing.T) {
	t.Parallel()
	keys := DefaultKeys()
	for name, tc := range map[string]struct {
		units  string
		labels strs
		mib    int
		gpus   int
	}{
		"two GPUs": {"2", strs{intelMemoryLabel: "103079215104"}, 48 << 10, 2},
		"two GPUs, shared by eight": {"16", strs{intelMemoryLabel: "103079215104", intelMillicoresLabel: "2000"}, 48 << 10,
			2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, bad := keys.ReadGPUNode(gpuNode(strs{"gpu.intel.com/i915": tc.units}, tc.labels, nil))
			if len(bad) > 0 || got.MemMiB() != tc.mib || got.GPUs() != tc.gpus || got.NVIDIA() {
				t.Errorf("%d GPUs of %d MiB, NVIDIA %t, bad values %v; want %d of %d", got.GPUs(), got.MemMiB(), got.NVIDIA(), bad,
					tc.gpus, tc.mib)
			}
		})
	}
	if _, bad := keys.ReadGPUNode(gpuNode(strs{"gpu.intel.com/xe": "1"}, strs{intelMemoryLabel: "48Gi"},
		nil)); len(bad) != 1 {
		t.Errorf("bad values %v, want one", bad)
	}
}

func TestSlicesHaveTheirOwnMemoryAndCompute(t *testing.T) {
	t.Parallel()
	keys := DefaultKeys()
	profile := func(c, m, cs, ms, mem int) gpu.Profile {
		return gpu.Profile{Compute: c, Memory: m, ComputeSlices: cs, MemorySlices: ms, MemMiB: mem}
	}
	for name, tc := range map[string]struct {
		allocatable, labels strs
		want                []gpu.SliceCount
		sliced, whole       int
	}{
		"single strategy, two A100": {strs{"nvidia.com/gpu": "14"},
			strs{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "nvidia.com/gpu.count": "14",
				"nvidia.com/gpu.memory": "4864", "nvidia.com/mig.strategy": "single"},
			[]gpu.SliceCount{{Resource: "nvidia.com/gpu", Count: 14, Total: 14, Milli: 142, Profile: profile(1, 1, 7, 8, 4864),
				Replicas: 1}}, 2, 0},
		"single strategy of a cloud, by older feature discovery": {strs{"nvidia.com/gpu": "56"},
			strs{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "nvidia.com/gpu.count": "56",
				"nvidia.com/gpu.memory": "4864", "nvidia.com/gpu.replicas": "1", v1.LabelInstanceTypeStable: "p4d.24xlarge"},
			[]gpu.SliceCount{{Resource: "nvidia.com/gpu", Count: 56, Total: 56, Milli: 142, Profile: profile(1, 1, 7, 8, 4864),
				Replicas: 1}}, 8, 0},
		"single strategy of a cloud, without replicas": {strs{"nvidia.com/gpu": "56"},
			strs{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", v1.LabelInstanceTypeStable: "p4d.24xlarge"},
			[]gpu.SliceCount{{Resource: "nvidia.com/gpu", Count: 56, Total: 56, Milli: 142, Profile: profile(1, 1, 7, 8, 5<<10),
				Replicas: 1}}, 8, 0},
		"single strategy on 16 GPUs": {strs{"nvidia.com/gpu": "112"},
			strs{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "nvidia.com/gpu.count": "112",
				v1.LabelInstanceTypeStable: "a2-megagpu-16g"},
			[]gpu.SliceCount{{Resource: "nvidia.com/gpu", Count: 112, Total: 112, Milli: 142,
				Profile: profile(1, 1, 7, 8, 5<<10), Replicas: 1}}, 16, 0},
		"time slices of slices": {strs{"nvidia.com/gpu": "8"},
			strs{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-3g.40gb-SHARED", "nvidia.com/gpu.count": "2",
				"nvidia.com/gpu.memory": "40192", "nvidia.com/gpu.replicas": "4"},
			[]gpu.SliceCount{{Resource: "nvidia.com/gpu", Count: 8, Total: 8, Milli: 428, Profile: profile(3, 4, 7, 8, 40192),
				Replicas: 4}}, 1, 0},
		"an A30": {strs{"nvidia.com/mig-2g.12gb": "2"}, strs{"nvidia.com/gpu.product": "NVIDIA-A30"},
			[]gpu.SliceCount{{Resource: "nvidia.com/mig-2g.12gb", Count: 2, Total: 2, Milli: 500,
				Profile: profile(2, 2, 4, 4, 12<<10), Replicas: 1}}, 1, 0},
		"GPUs of four and of eight memory slices": {strs{"nvidia.com/mig-1g.5gb": "9", "nvidia.com/mig-1g.6gb": "5"}, nil,
			[]gpu.SliceCount{
				{Resource: "nvidia.com/mig-1g.5gb", Count: 9, Total: 9, Milli: 142, Profile: profile(1, 1, 7, 8, 5<<10),
					Replicas: 1},
				{Resource: "nvidia.com/mig-1g.6gb", Count: 5, Total: 5, Milli: 250, Profile: profile(1, 1, 4, 4, 6<<10),
					Replicas: 1},
			}, 4, 0},
		"slices of an unknown geometry are as many GPUs as they fill": {strs{"nvidia.com/mig-small": "9",
			"nvidia.com/mig-1g.5gb": "7"}, nil,
			[]gpu.SliceCount{
				{Resource: "nvidia.com/mig-1g.5gb", Count: 7, Total: 7, Milli: 142, Profile: profile(1, 1, 7, 8, 5<<10),
					Replicas: 1},
				{Resource: "nvidia.com/mig-small", Count: 9, Total: 9, Milli: 142, Replicas: 1},
			}, 3, 0},
		"GPUs of an unknown geometry": {strs{"nvidia.com/gpu": "8"}, strs{"nvidia.com/gpu.product": "NVIDIA-Z100-MIG-small"},
			[]gpu.SliceCount{{Resource: "nvidia.com/gpu", Count: 8, Total: 8, Milli: 142, Replicas: 1}}, 2, 0},
		"more slices than any node has": {strs{"nvidia.com/gpu": "16384"},
			strs{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"},
			[]gpu.SliceCount{{Resource: "nvidia.com/gpu", Count: 16384, Total: 16384, Milli: 142,
				Profile: profile(1, 1, 7, 8, 5<<10), Replicas: 1}}, 1024, 0},
		"mixed, with GPUs that are whole": {strs{"nvidia.com/gpu": "6", "nvidia.com/mig-1g.10gb": "7"},
			strs{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "8",
				"nvidia.com/mig-1g.10gb.memory": "9856"},
			[]gpu.SliceCount{{Resource: "nvidia.com/mig-1g.10gb", Count: 7, Total: 7, Milli: 142,
				Profile: profile(1, 1, 7, 8, 9856), Replicas: 1}}, 2, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, bad := keys.ReadGPUNode(gpuNode(tc.allocatable, tc.labels, nil))
			inv := got.Empty()
			if diff := cmp.Diff(tc.want, inv.Slices); diff != "" || len(bad) > 0 {
				t.Errorf("slices, bad values %v (-want +got):\n%s", bad, diff)
			}
			if inv.SlicedGPUs != tc.sliced || len(inv.Devices) != tc.whole || inv.Healthy() != tc.whole {
				t.Errorf("%d GPUs in slices, %d whole, %d healthy; want %d and %d healthy", inv.SlicedGPUs, len(inv.Devices),
					inv.Healthy(), tc.sliced, tc.whole)
			}
			if faulty := inv.WithFaulty(nil, 1); tc.whole > 0 && faulty.Healthy() != tc.whole-1 {
				t.Errorf("%d healthy GPUs with one fault, want %d: GPUs in slices absorb none", faulty.Healthy(), tc.whole-1)
			}
		})
	}
}
