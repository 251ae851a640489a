package gpuview

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
)

// parts are what a test compares of GPUs that are cut: GPUs in sum, those that are cut into hardware slices, time
// slices of each GPU and of each hardware slice, and what pods may have in sum.
type parts struct{ GPUs, Sliced, Replicas, OfSlice, Offered int }

func partsOf(g *Node) parts {
	inv := g.Empty()
	p := parts{GPUs: len(inv.Devices) + inv.SlicedGPUs, Sliced: inv.SlicedGPUs, Replicas: inv.Replicas,
		Offered: len(inv.Devices)}
	if inv.TimeSliced() {
		p.Offered = inv.FreeReplicas
	}
	if len(inv.Slices) > 0 {
		p.OfSlice, p.Offered = inv.Slices[0].Replicas, inv.Slices[0].Total
	}
	return p
}

func TestReplicasDivideWhatTheDevicePluginOffers(t *testing.T) {
	t.Parallel()
	keys := DefaultKeys()
	const (
		nv, renamed, mig  = "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb"
		replicas, count   = "nvidia.com/gpu.replicas", "nvidia.com/gpu.count"
		strategy, product = "nvidia.com/gpu.sharing-strategy", "nvidia.com/gpu.product"
		a100              = "NVIDIA-A100-SXM4-40GB"
	)
	for name, tc := range map[string]struct {
		allocatable, labels strs
		want                []parts
		bad                 string
	}{
		"as many as a cut has thousandths": {strs{nv: "1000"}, strs{replicas: "1000"},
			[]parts{{1, 0, 1000, 0, 1000}}, ""},
		"1,024": {strs{nv: "1024"}, strs{replicas: "1024"},
			[]parts{{1, 0, 1024, 0, 1024}}, ""},
		"more than thousandths": {strs{nv: "4096"}, strs{replicas: "4096"},
			[]parts{{1, 0, 4096, 0, 4096}}, ""},
		"more units than GPUs on any node": {strs{nv: "32768"}, strs{replicas: "4096"},
			[]parts{{8, 0, 4096, 0, 32768}}, ""},
		"a million, with the number of GPUs": {strs{nv: "2M"}, strs{replicas: "1000000", count: "2"},
			[]parts{{2, 0, 1e6, 0, 2e6}}, ""},
		"more than a number holds": {strs{nv: "8"}, strs{replicas: "99999999999", count: "8"},
			[]parts{{8, 0, 1, 0, 8}}, replicas},
		"by count and strategy": {strs{nv: "4096"}, strs{strategy: "mps", count: "1"},
			[]parts{{1, 0, 4096, 0, 4096}}, ""},
		"by the labels of GKE": {strs{nv: "4096"}, strs{gkeAcceleratorLabel: "nvidia-tesla-t4", gkeClientsLabel: "2048"},
			[]parts{{2, 0, 2048, 0, 4096}}, ""},
		"a GPU of which not all is offered": {strs{nv: "3"}, strs{replicas: "4"},
			[]parts{{1, 0, 4, 0, 3}}, ""},
		"two, of which not all is offered": {strs{nv: "6"}, strs{replicas: "4"},
			[]parts{{2, 0, 4, 0, 6}}, ""},
		"one GPU of two is broken": {strs{nv: "4"}, strs{replicas: "4", count: "2"},
			[]parts{{2, 0, 4, 0, 4}}, ""},
		"a label from before there were more": {strs{nv: "4096"}, strs{replicas: "4", count: "1"},
			[]parts{{1, 0, 4096, 0, 4096}}, ""},
		"four GPUs of ten units": {strs{nv: "10"}, strs{v1.LabelInstanceTypeStable: "g6.12xlarge"},
			[]parts{{4, 0, 3, 0, 10}}, ""},
		"none": {strs{nv: "2"}, strs{replicas: "0"},
			[]parts{{2, 0, 1, 0, 2}}, ""},
		"one": {strs{nv: "2"}, strs{replicas: "1"},
			[]parts{{2, 0, 1, 0, 2}}, ""},
		"fewer than none": {strs{nv: "2"}, strs{replicas: "-4"},
			[]parts{{2, 0, 1, 0, 2}}, replicas},
		"a word": {strs{nv: "2"}, strs{replicas: "four"},
			[]parts{{2, 0, 1, 0, 2}}, replicas},
		"a word, where the GPUs are counted": {strs{nv: "4096"}, strs{replicas: "many", count: "1", strategy: "time-slicing"},
			[]parts{{1, 0, 4096, 0, 4096}}, replicas},
		"switched off": {strs{nv: "4"}, strs{replicas: "4", strategy: "none"},
			[]parts{{4, 0, 1, 0, 4}}, ""},
		"beside another maker": {strs{nv: "4096", "amd.com/gpu": "2"}, strs{replicas: "4096"},
			[]parts{{1, 0, 4096, 0, 4096}, {2, 0, 1, 0, 2}}, ""},
		"beside GPUs that are whole": {strs{nv: "2", renamed: "8192"}, strs{replicas: "4096", count: "4"},
			[]parts{{2, 0, 1, 0, 2}, {2, 0, 4096, 0, 8192}}, ""},
		"of slices that are offered as GPUs": {strs{nv: "28672"}, strs{replicas: "4096", count: "7",
			product: a100 + "-MIG-1g.5gb-SHARED"},
			[]parts{{1, 1, 1, 4096, 28672}}, ""},
		"of slices with a name of their own": {strs{mig: "28672"}, strs{mig + ".replicas": "4096", count: "1",
			replicas: "0", product: a100},
			[]parts{{1, 1, 1, 4096, 28672}}, ""},
		"of such slices, not all offered": {strs{mig: "5"}, strs{mig + ".replicas": "4", product: a100},
			[]parts{{1, 1, 1, 4, 5}}, ""},
		"of such slices, not a number": {strs{mig: "7"}, strs{mig + ".replicas": "x", product: a100},
			[]parts{{1, 1, 1, 1, 7}}, mig + ".replicas"},
		"no such slices, as none could be made": {strs{nv: "0"}, strs{product: a100 + "-MIG-INVALID",
			count: "0", replicas: "0", "nvidia.com/gpu.memory": "0"},
			[]parts{{Replicas: 1}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read, bad := keys.ReadGPUNode(gpuNode(tc.allocatable, tc.labels, nil))
			var got []parts
			for _, pool := range read.Pools() {
				got = append(got, partsOf(pool))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
			if tc.bad == "" && len(bad) > 0 || tc.bad != "" && (len(bad) != 1 || bad[0].Key != tc.bad) {
				t.Errorf("bad values %v, want %q", bad, tc.bad)
			}
		})
	}
}

func TestMemoryOfNoneIsUnknown(t *testing.T) {
	t.Parallel()
	keys := DefaultKeys()
	for resource, labels := range map[string]strs{
		"nvidia.com/gpu":     {"nvidia.com/gpu.product": "NVIDIA-GB10", "nvidia.com/gpu.memory": "0"},
		"amd.com/gpu":        {"amd.com/gpu.product-name": "AMD_Radeon_890M", "amd.com/gpu.vram": "0G"},
		"gpu.intel.com/i915": {"gpu.intel.com/product": "Xe", intelMemoryLabel: "0", intelMillicoresLabel: "1000"},
	} {
		read, bad := keys.ReadGPUNode(gpuNode(strs{resource: "1"}, labels, nil))
		model, memory := read.Unknown()
		if len(bad) > 0 || model || !memory || read.MemMiB() != 0 {
			t.Errorf("%s: bad values %v, %d MiB, unknown model %t, unknown memory %t", resource, bad, read.MemMiB(), model,
				memory)
		}
	}
}
