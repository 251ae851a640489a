package gpuview

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/wellknown"
)

// gpuNode makes a node with these allocatable resources, labels and annotations.
func gpuNode(allocatable, labels, annotations strs) *v1.Node {
	list := v1.ResourceList{v1.ResourceCPU: resource.MustParse("64")}
	for name, q := range allocatable {
		list[v1.ResourceName(name)] = resource.MustParse(q)
	}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: labels, Annotations: annotations},
		Status:     v1.NodeStatus{Allocatable: list},
	}
}

// facts are what a test compares of an empty node.
type facts struct {
	Mode               gpu.Mode
	Resource, Model    string
	Generation, MemMiB int
	GPUs, Healthy      int
	Sliced             int
	Replicas           int
	NVLinked           int
}

func factsOf(g *Node) facts {
	inv := g.Empty()
	return facts{inv.Mode, inv.Resource, inv.Model, inv.Generation, inv.MemMiB, g.GPUs(), inv.Healthy(), inv.SlicedGPUs,
		inv.Replicas, inv.Links.LargestLinked(len(inv.Devices))}
}

func TestReadGPUNode(t *testing.T) {
	t.Parallel()
	keys := DefaultKeys()
	const nv = "nvidia.com/gpu"
	for _, tc := range []struct {
		name                             string
		allocatable, labels, annotations strs
		want                             facts
	}{
		{"a node without GPUs", nil, nil, nil, facts{Replicas: 1, NVLinked: 1}},
		{"GPU feature discovery", strs{nv: "8"}, strs{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
			"nvidia.com/gpu.memory": "81920", "nvidia.com/gpu.count": "8",
			"nvidia.com/gpu.compute.major": "8", "nvidia.com/gpu.compute.minor": "0", "nvidia.com/gpu.replicas": "1",
			"nvidia.com/gpu.sharing-strategy": "none"}, nil,
			facts{gpu.ModeDevicePlugin, nv, "NVIDIA-A100-SXM4-80GB", 80, 81920, 8, 8, 0, 1, 8}},
		{"the product fills in what labels leave out", strs{nv: "4"}, strs{"nvidia.com/gpu.product": "Tesla-T4"}, nil,
			facts{gpu.ModeDevicePlugin, nv, "Tesla-T4", 75, 16384, 4, 4, 0, 1, 1}},
		{"labels of published examples", strs{nv: "2"}, strs{"gpu-memory-gb": "40", "gpu-interconnect": "nvlink",
			"gpu-generation": "h100", "gpu-type": "H100"}, nil,
			facts{gpu.ModeDevicePlugin, nv, "H100", 90, 40960, 2, 2, 0, 1, 2}},
		{"AMD", strs{"amd.com/gpu": "8"}, strs{"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM",
			"amd.com/gpu.vram": "192G"}, nil,
			facts{gpu.ModeDevicePlugin, "amd.com/gpu", "AMD_Instinct_MI300X_OAM", 0, 192 << 10, 8, 8, 0, 1, 8}},
		{"Intel", strs{"gpu.intel.com/i915": "2"}, strs{"gpu.intel.com/product": "Max_1550"}, nil,
			facts{gpu.ModeDevicePlugin, "gpu.intel.com/i915", "Max_1550", 0, 128 << 10, 2, 2, 0, 1, 1}},
		{"time slices are divided out", strs{nv: "8"}, strs{"nvidia.com/gpu.product": "Tesla-T4-SHARED",
			"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"}, nil,
			facts{gpu.ModeDevicePlugin, nv, "Tesla-T4", 75, 16384, 2, 2, 0, 4, 1}},
		{"time slices without a label of their number", strs{nv: "8"},
			strs{"nvidia.com/gpu.count": "2", "nvidia.com/gpu.sharing-strategy": "mps"}, nil,
			facts{gpu.ModeDevicePlugin, nv, "", 0, 0, 2, 2, 0, 4, 1}},
		{"a label of replicas leaves nothing to guess", strs{nv: "8"},
			strs{"nvidia.com/gpu.replicas": "1", v1.LabelInstanceTypeStable: "g6.12xlarge"}, nil,
			facts{gpu.ModeDevicePlugin, nv, "NVIDIA-L4", 89, 24 << 10, 8, 8, 0, 1, 1}},
		{"time slices under a name of their own", strs{"nvidia.com/gpu.shared": "8"},
			strs{"nvidia.com/gpu.count": "2", "nvidia.com/gpu.replicas": "4"}, nil,
			facts{gpu.ModeDevicePlugin, "nvidia.com/gpu.shared", "", 0, 0, 2, 2, 0, 4, 1}},
		{"GPUs that the device plugin took out", strs{nv: "7"}, strs{"nvidia.com/gpu.count": "8"}, nil,
			facts{gpu.ModeDevicePlugin, nv, "", 0, 0, 8, 7, 0, 1, 1}},
		{"a device plugin that is down", nil, strs{"nvidia.com/gpu.count": "8"}, nil,
			facts{gpu.ModeDevicePlugin, nv, "", 0, 0, 8, 0, 0, 1, 1}},
		{"AMD's device plugin is down, on a known machine", nil,
			strs{v1.LabelInstanceTypeStable: "Standard_ND96isr_MI300X_v5"}, nil,
			facts{gpu.ModeDevicePlugin, "amd.com/gpu", "AMD_Instinct_MI300X_OAM", 0, 192 << 10, 8, 0, 0, 1, 8}},
		{"the same by the labels of Karpenter", nil, strs{"karpenter.k8s.aws/instance-gpu-name": "radeon-pro-v520",
			"karpenter.k8s.aws/instance-gpu-count": "4"}, nil,
			facts{gpu.ModeDevicePlugin, "amd.com/gpu", "AMD_Radeon_Pro_V520", 0, 8 << 10, 4, 0, 0, 1, 1}},
		{"a device plugin that is down, on a known machine", nil, strs{v1.LabelInstanceTypeStable: "p4d.24xlarge"}, nil,
			facts{gpu.ModeDevicePlugin, nv, "NVIDIA-A100-SXM4-40GB", 80, 40 << 10, 8, 0, 0, 1, 8}},
		{"a shared node", strs{nv: "4"}, strs{wellknown.GPUModeKey: "shared"}, nil, facts{gpu.ModeShared, nv, "", 0, 0, 4, 4,
			0, 1, 1}},
		{"a shared node whose GPUs are offered as time slices", strs{nv: "8"}, strs{wellknown.GPUModeKey: "shared",
			"nvidia.com/gpu.count": "2", "nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"},
			nil, facts{gpu.ModeShared, nv, "", 0, 0, 2, 2, 0, 1, 1}},
		{"a shared node of GKE, by its clients of a GPU", strs{nv: "8"}, strs{wellknown.GPUModeKey: "shared",
			gkeAcceleratorLabel: "nvidia-tesla-t4", gkeCountLabel: "2", gkeClientsLabel: "4"}, nil,
			facts{gpu.ModeShared, nv, "Tesla-T4", 75, 16 << 10, 2, 2, 0, 1, 1}},
		{"a shared node that is a machine of two GPUs", strs{nv: "8"}, strs{wellknown.GPUModeKey: "shared",
			v1.LabelInstanceTypeStable: "Standard_NC12s_v3"}, nil,
			facts{gpu.ModeShared, nv, "Tesla-V100-PCIE-16GB", 70, 16 << 10, 2, 2, 0, 1, 1}},
		{"feature discovery counts before the cloud and the machine", strs{nv: "2"}, strs{
			"nvidia.com/gpu.product": "NVIDIA-H100-PCIe", "nvidia.com/gpu.memory": "81559", "nvidia.com/gpu.count": "2",
			gkeAcceleratorLabel: "nvidia-l4", gkeCountLabel: "4", v1.LabelInstanceTypeStable: "p4d.24xlarge"}, nil,
			facts{gpu.ModeDevicePlugin, nv, "NVIDIA-H100-PCIe", 90, 81559, 2, 2, 0, 1, 1}},
		{"the cloud counts before the machine", strs{nv: "2"}, strs{gkeAcceleratorLabel: "nvidia-l4", gkeCountLabel: "4",
			v1.LabelInstanceTypeStable: "p4d.24xlarge"}, nil,
			facts{gpu.ModeDevicePlugin, nv, "NVIDIA-L4", 89, 24 << 10, 4, 2, 0, 1, 1}},
		{"TPUs are no GPUs", strs{"google.com/tpu": "4"}, strs{"cloud.google.com/gke-tpu-accelerator": "tpu7x",
			gkeCountLabel: "4", v1.LabelInstanceTypeStable: "tpu7x-standard-4t"}, nil, facts{Replicas: 1, NVLinked: 1}},
		{"HAMi's records", strs{nv: "20"}, nil,
			strs{hamiRegisterKey: "GPU-a,10,32768,100,NVIDIA-V100,0,true:GPU-b,10,32768,100,NVIDIA-V100,0,false:"},
			facts{gpu.ModeShared, nv, "", 0, 32768, 2, 1, 0, 1, 1}},
		{"HAMi's JSON", strs{nv: "10"}, nil, strs{hamiRegisterKey: `[{"id":"GPU-a","count":10,"devmem":16384,"devcore":100,"type":"T4","health":true}]`},
			facts{gpu.ModeShared, nv, "", 0, 16384, 1, 1, 0, 1, 1}},
		{"HAMi's records of a GPU that it cuts into slices", strs{nv: "20"}, nil,
			strs{
				hamiRegisterKey: "GPU-a,10,32768,100,NVIDIA-A100,0,true,0,hami-core:GPU-b,10,32768,100,NVIDIA-A100,0,true,1,mig:"},
			facts{gpu.ModeShared, nv, "", 0, 32768, 2, 1, 0, 1, 1}},
		{"the same in JSON", strs{nv: "20"}, nil, strs{hamiRegisterKey: `[{"id":"GPU-a","count":10,"devmem":16384,"health":true,"mode":"hami-core"},` +
			`{"id":"GPU-b","count":10,"devmem":16384,"health":true,"mode":"mig"}]`}, facts{gpu.ModeShared, nv, "", 0, 16384, 2, 1, 0, 1, 1}},
		{"links from an agent", strs{nv: "4"}, nil, strs{wellknown.GPULinksKey: `{"links":[[0,1,"NV12"],[1,2,"NV12"],[0,3,"SYS"]]}`},
			facts{gpu.ModeDevicePlugin, nv, "", 0, 0, 4, 4, 0, 1, 3}},
		{"the matrix beats the product", strs{nv: "2"}, strs{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}, strs{wellknown.GPULinksKey: `{"links":[]}`},
			facts{gpu.ModeDevicePlugin, nv, "NVIDIA-H100-80GB-HBM3", 90, 80 << 10, 2, 2, 0, 1, 1}},
		{"MIG slices and no whole GPUs", strs{"nvidia.com/mig-1g.5gb": "7"}, strs{"nvidia.com/gpu.count": "1"}, nil,
			facts{gpu.ModeDevicePlugin, "", "", 0, 0, 1, 0, 1, 1, 1}},
		{"claims", nil, strs{wellknown.GPUModeKey: "dra"}, nil, facts{gpu.ModeDRA, nv, "", 0, 0, 0, 0, 0, 1, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, bad := keys.ReadGPUNode(gpuNode(tc.allocatable, tc.labels, tc.annotations))
			if diff := cmp.Diff(tc.want, factsOf(got)); diff != "" || len(bad) > 0 {
				t.Errorf("ReadGPUNode, bad values %v (-want +got):\n%s", bad, diff)
			}
		})
	}
}

func TestOnlyGPUsOfNVIDIAAreMeasured(t *testing.T) {
	t.Parallel()
	keys := DefaultKeys()
	for machine, want := range map[string]bool{"g4ad.8xlarge": false, "bm.gpu.mi300x.8": false, "p4d.24xlarge": true} {
		for _, allocatable := range []strs{nil, {"nvidia.com/gpu": "8"}} {
			got, _ := keys.ReadGPUNode(gpuNode(allocatable, strs{v1.LabelInstanceTypeStable: machine}, nil))
			if got.NVIDIA() != (want || allocatable != nil) {
				t.Errorf("%s that offers %v: NVIDIA %t", machine, allocatable, got.NVIDIA())
			}
		}
	}
}

func TestGPUsThatAreClaimedAreMeasuredByTheirProduct(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]bool{"NVIDIA-H200": true, "AMD_Instinct_MI300X_OAM": false, "": true} {
		claimed := &Node{empty: gpu.Inventory{Mode: gpu.ModeDRA, Model: model}, uuids: []string{"a"}}
		if got := claimed.NVIDIA(); got != want {
			t.Errorf("model %q: NVIDIA %t", model, got)
		}
	}
}

func TestReadGPUNodeReportsWhatItCannotUse(t *testing.T) {
	t.Parallel()
	keys := DefaultKeys()
	for _, tc := range []struct {
		name                string
		labels, annotations strs
		want                string
	}{
		{"memory with a wrong unit", strs{"nvidia.com/gpu.memory": "80TB"}, nil, `node label nvidia.com/gpu.memory: "80TB" is not the memory of one GPU`},
		{"negative memory", strs{"gpu-memory-gb": "-1"}, nil, `node label gpu-memory-gb: "-1" is not the memory of one GPU`},
		{"a count in words", strs{"nvidia.com/gpu.count": "eight"}, nil, `node label nvidia.com/gpu.count: "eight" is not a whole number from 0 to 16384`},
		{"a huge count", strs{"nvidia.com/gpu.count": "1000000000"}, nil, `node label nvidia.com/gpu.count: "1000000000" is not a whole number from 0 to 16384`},
		{"an unknown generation", strs{"gpu-generation": "newest"}, nil, `node label gpu-generation: "newest" is not a compute capability`},
		{"an unknown mode", strs{wellknown.GPUModeKey: "Shared"}, nil, `node label berth.dev/gpu-mode: "Shared" is not device-plugin, shared or dra`},
		{"links that are no JSON", nil, strs{wellknown.GPULinksKey: "NV12"}, `node annotation berth.dev/gpu-links: "NV12" is not links among the node's GPUs`},
		{"links of GPUs that do not exist", nil, strs{wellknown.GPULinksKey: `{"links":[[0,9,"NV12"]]}`}, "indices must differ and be within 0 to 3"},
		{"a link of unknown kind", nil, strs{wellknown.GPULinksKey: `{"links":[[0,1,"FAST"]]}`}, `unknown link "FAST"`},
		{"a link of two elements", nil, strs{wellknown.GPULinksKey: `{"links":[[0,1]]}`}, "an entry of 2 elements"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			node, bad := keys.ReadGPUNode(gpuNode(strs{"nvidia.com/gpu": "4"}, tc.labels, tc.annotations))
			if len(bad) != 1 || !strings.Contains(bad[0].Error(), tc.want) {
				t.Errorf("bad values = %v, want one with %q", bad, tc.want)
			}
			absent, _ := keys.ReadGPUNode(gpuNode(strs{"nvidia.com/gpu": "4"}, nil, nil))
			if diff := cmp.Diff(factsOf(absent), factsOf(node)); diff != "" {
				t.Errorf("the bad value was not treated as absent (-absent +bad):\n%s", diff)
			}
		})
	}
}

func FuzzReadGPUNode(f *testing.F) {
	for _, seed := range []string{"", "8", "-1", "80Gi", "9.0", "hopper", `{"links":[[0,1,"NV12"]]}`, `{"links":[[0,null,1]]}`, "0,1", "GPU-a,10,32768,100,T,0,true:", `[{"id":"a"}]`, "99999999999999999999"} {
		f.Add(seed, seed, seed, seed)
	}
	keys := DefaultKeys()
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		for _, node := range []*v1.Node{
			gpuNode(strs{"nvidia.com/gpu": "4"}, strs{"nvidia.com/gpu.memory": a, "nvidia.com/gpu.count": b,
				"nvidia.com/gpu.replicas": c, "nvidia.com/gpu.sharing-strategy": d}, nil),
			gpuNode(strs{"nvidia.com/gpu": "4"}, strs{"nvidia.com/gpu.product": a, "gpu-generation": b, wellknown.GPUModeKey: c,
				"gpu-memory-gb": d}, nil),
			gpuNode(strs{"nvidia.com/gpu": "4"}, nil, strs{wellknown.GPULinksKey: a, hamiRegisterKey: c}),
		} {
			g, _ := keys.ReadGPUNode(node)
			inv := g.Empty()
			if len(inv.Devices) > MaxGPUs || inv.MemMiB < 0 || inv.Replicas < 1 || inv.Generation < 0 {
				t.Fatalf("inventory out of range: %+v", inv)
			}
		}
	})
}
