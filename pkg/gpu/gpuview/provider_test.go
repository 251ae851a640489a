package gpuview

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/require"
)

// platformNode reads a node of a platform, as the documentation of the platform describes it.
func platformNode(t *testing.T, name string) *v1.Node {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "nodes", name+".yaml"))
	require.NoError(t, err)
	node := &v1.Node{}
	if err := yaml.UnmarshalStrict(data, node); err != nil {
		t.Fatalf("reading node %s: %v", name, err)
	}
	return node
}

// platforms are what has to be read of each platform's node.
var platforms = map[string]struct {
	facts
	// gib is the most memory that a pod may ask for there.
	gib string
}{
	"gke-time-shared-t4": {facts{Resource: "nvidia.com/gpu", Model: "Tesla-T4", Generation: 75, MemMiB: 16 << 10, GPUs: 1,
		Healthy: 1, Replicas: 8, NVLinked: 1}, "16Gi"},
	"gke-a100-80gb": {facts{Resource: "nvidia.com/gpu", Model: "NVIDIA-A100-SXM4-80GB", Generation: 80, MemMiB: 80 << 10,
		GPUs: 8, Healthy: 8, Replicas: 1, NVLinked: 8}, "80Gi"},
	"gke-a100-40gb": {facts{Resource: "nvidia.com/gpu", Model: "NVIDIA-A100-SXM4-40GB", Generation: 80, MemMiB: 40 << 10,
		GPUs: 2, Healthy: 2, Replicas: 1, NVLinked: 2}, "40Gi"},
	"gke-mig": {facts{Resource: "nvidia.com/gpu", Model: "NVIDIA-A100-SXM4-40GB", Generation: 80, MemMiB: 40 << 10,
		GPUs: 1, Sliced: 1, Replicas: 1, NVLinked: 1}, "5Gi"},
	"eks-karpenter": {facts{Resource: "nvidia.com/gpu", Model: "NVIDIA-A100-SXM4-40GB", Generation: 80, MemMiB: 40 << 10,
		GPUs: 8, Healthy: 8, Replicas: 1, NVLinked: 8}, "40Gi"},
	"eks-managed": {facts{Resource: "nvidia.com/gpu", Model: "NVIDIA-A10G", Generation: 86, MemMiB: 24 << 10, GPUs: 4,
		Healthy: 4, Replicas: 1, NVLinked: 1}, "24Gi"},
	"eks-auto": {facts{Resource: "nvidia.com/gpu", Model: "NVIDIA-L4", Generation: 89, MemMiB: 22888, GPUs: 1,
		Healthy: 1, Replicas: 1, NVLinked: 1}, "22888Mi"},
	"aks-a100": {facts{Resource: "nvidia.com/gpu", Model: "NVIDIA-A100-80GB-PCIe", Generation: 80, MemMiB: 80 << 10,
		GPUs: 1, Healthy: 1, Replicas: 1, NVLinked: 1}, "80Gi"},
	"aks-h100": {facts{Resource: "nvidia.com/gpu", Model: "NVIDIA-H100-80GB-HBM3", Generation: 90, MemMiB: 80 << 10,
		GPUs: 8, Healthy: 8, Replicas: 1, NVLinked: 8}, "80Gi"},
	"oke": {facts{Resource: "amd.com/gpu", Model: "AMD_Instinct_MI300X_OAM", MemMiB: 192 << 10, GPUs: 8, Healthy: 8,
		Replicas: 1, NVLinked: 8}, "192Gi"},
	"ack": {facts{Resource: "nvidia.com/gpu", Model: "Tesla-V100-SXM2-16GB", Generation: 70, MemMiB: 16160, GPUs: 2,
		Healthy: 2, Replicas: 1, NVLinked: 1}, "16160Mi"},
	"bare-metal": {facts{Resource: "nvidia.com/gpu", Model: "NVIDIA-H100-80GB-HBM3", Generation: 90, MemMiB: 81559,
		GPUs: 8, Healthy: 6, Sliced: 2, Replicas: 1, NVLinked: 6}, "81559Mi"},
	"openshift-machine-set": {facts{Resource: "nvidia.com/gpu", Model: "Tesla-T4", Generation: 75, MemMiB: 16 << 10,
		GPUs: 1, Healthy: 1, Replicas: 1, NVLinked: 1},
		"16Gi"},
	"openshift-feature-discovery": {facts{Resource: "nvidia.com/gpu", Model: "NVIDIA-L40S", Generation: 89, MemMiB: 46068,
		GPUs: 4, Healthy: 4, Replicas: 2, NVLinked: 1},
		"46068Mi"},
	"aks-node-auto-provisioning": {facts{Resource: "nvidia.com/gpu", Model: "NVIDIA-A10", Generation: 86, MemMiB: 4 << 10,
		GPUs: 1, Healthy: 1, Replicas: 1, NVLinked: 1},
		"4Gi"},
}

func TestPlatforms(t *testing.T) {
	t.Parallel()
	keys := DefaultKeys()
	files, err := filepath.Glob("testdata/nodes/*.yaml")
	if err != nil || len(files) != len(platforms) {
		t.Errorf("%d fixtures (%v) for %d platforms", len(files), err, len(platforms))
	}
	for name, want := range platforms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := platformNode(t, name)
			got, bad := keys.ReadGPUNode(node)
			if diff := cmp.Diff(want.facts, factsOf(got)); diff != "" || len(bad) > 0 {
				t.Errorf("ReadGPUNode, bad values %v (-want +got):\n%s", bad, diff)
			}
			for _, tc := range []struct {
				what        string
				count       string
				annotations strs
				fits        bool
			}{
				{"a GPU of its model", "1", strs{wellknown.GPUModelsKey: want.Model}, true},
				{"a GPU of another model", "1", strs{wellknown.GPUModelsKey: "NVIDIA-H20"}, false},
				{"all its memory", "1", strs{wellknown.GPUMemoryMinKey: want.gib}, true},
				{"more memory than it has", "1", strs{wellknown.GPUMemoryMinKey: "200Gi"}, false},
				{"two linked GPUs", "2", strs{wellknown.GPUInterconnectKey: "required"}, want.NVLinked > 1},
				{"nine GPUs", "9", nil, false},
				{"a GPU of its own", "1", strs{wellknown.GPUSharingKey: "exclusive"}, want.Replicas == 1 && want.Healthy > 0},
			} {
				r, err := keys.PodGPURequest(gpuPod(strs{want.Resource: tc.count}, tc.annotations))
				require.NoError(t, err)
				if reason := gpu.Fit(got.Empty(), &r.Request); (reason.Cause == gpu.Fits) != tc.fits {
					t.Errorf("%s: %q, want it to fit: %t", tc.what, reason, tc.fits)
				}
			}
		})
	}
}

// TestOneProductOfTwoNames asks for a product by its name in data sheets on a node that is labeled as the driver names
// it, and the other way round.
func TestOneProductOfTwoNames(t *testing.T) {
	t.Parallel()
	keys := DefaultKeys()
	for name, labels := range map[string]strs{
		"feature discovery":          {"nvidia.com/gpu.product": "NVIDIA-B300-SXM6-AC"},
		"a label in the older words": {"nvidia.com/gpu.product": "NVIDIA-B300"},
		"the instance type":          {v1.LabelInstanceTypeStable: "p6-b300.48xlarge"},
		"the labels of Karpenter":    {"karpenter.k8s.aws/instance-gpu-name": "b300"},
	} {
		node, bad := keys.ReadGPUNode(gpuNode(strs{"nvidia.com/gpu": "8"}, labels, nil))
		if node.Model() != "NVIDIA-B300-SXM6-AC" || len(bad) > 0 {
			t.Errorf("%s: model %q, bad values %v", name, node.Model(), bad)
		}
		for _, model := range []string{"NVIDIA-B300", "nvidia-b300", "NVIDIA-B300-SXM6-AC"} {
			r, err := keys.PodGPURequest(gpuPod(strs{"nvidia.com/gpu": "1"}, strs{wellknown.GPUModelsKey: model}))
			require.NoError(t, err)
			if reason := gpu.Fit(node.Empty(), &r.Request); reason.Cause != gpu.Fits {
				t.Errorf("%s: a pod for %s: %s", name, model, reason)
			}
		}
	}
}

func TestModelsInTheWordsOfAProvider(t *testing.T) {
	t.Parallel()
	keys := DefaultKeys()
	r, err := keys.PodGPURequest(gpuPod(strs{"nvidia.com/gpu": "1"},
		strs{wellknown.GPUModelsKey: "nvidia-tesla-t4|nvidia-a100-80gb"}))
	if diff := cmp.Diff([]string{"NVIDIA-A100-SXM4-80GB", "Tesla-T4"}, r.Models); diff != "" || err != nil {
		t.Errorf("models of GKE, error %v (-want +got):\n%s", err, diff)
	}
}
