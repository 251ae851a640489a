package tool_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// gpuNode is a node named nn with labels, the first in line 6, and resources.
func gpuNode(labels map[string]string, allocatable string) string {
	var text strings.Builder
	text.WriteString("apiVersion: v1\nkind: Node\nmetadata:\n  name: nn\n  labels:\n    kubernetes.io/os: linux\n")
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&text, "    %s: %q\n", key, labels[key])
	}
	return text.String() + "status: {allocatable: {cpu: 8, " + allocatable + "}}\n"
}

// TestLabelsThatMakersAndProvidersSetAreKnown has each label that is documented for nodes with GPUs, with a value as it
// is there.
func TestLabelsThatMakersAndProvidersSetAreKnown(t *testing.T) {
	t.Parallel()
	const mig = "nvidia.com/mig-1g.5gb"
	for name, tt := range map[string]struct{ allocatable, labels string }{
		"GPU feature discovery": {"nvidia.com/gpu: 8", `
			nvidia.com/cuda.driver.major=550 nvidia.com/cuda.driver.minor=54 nvidia.com/cuda.driver.rev=15
			nvidia.com/cuda.runtime.major=12 nvidia.com/cuda.runtime.minor=4 nvidia.com/cuda.driver-version.full=550.54.15
			nvidia.com/cuda.driver-version.major=550 nvidia.com/cuda.driver-version.minor=54
			nvidia.com/cuda.driver-version.revision=15 nvidia.com/cuda.runtime-version.full=12.4
			nvidia.com/cuda.runtime-version.major=12 nvidia.com/cuda.runtime-version.minor=4
			nvidia.com/gfd.timestamp=1719000000 nvidia.com/gpu.compute.major=9 nvidia.com/gpu.compute.minor=0
			nvidia.com/gpu.count=8 nvidia.com/gpu.family=hopper nvidia.com/gpu.machine=DGXH100 nvidia.com/gpu.memory=81559
			nvidia.com/gpu.mode=compute nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3 nvidia.com/gpu.replicas=1
			nvidia.com/gpu.sharing-strategy=none nvidia.com/gpu.clique=7b968a6d-c8aa-45e1-9e07-e1e51be99c31.1
			nvidia.com/gpu.imex-domain=79b326e7-d566-3483-c2a3-9b38fa5cb1c8.1 nvidia.com/mig.capable=true
			nvidia.com/mig.strategy=none nvidia.com/mps.capable=false nvidia.com/vgpu.present=false
			nvidia.com/vgpu.host-driver-version=550.54 nvidia.com/vgpu.host-driver-branch=r550_00`},
		"feature discovery of a family without a name": {"nvidia.com/gpu: 1", `
			nvidia.com/gpu.product=NVIDIA-H200 nvidia.com/gpu.family=undefined nvidia.com/gpu.compute.major=12
			nvidia.com/gpu.compute.minor=1 nvidia.com/gpu.count=1`},
		"feature discovery of time slices": {"nvidia.com/gpu: 16", `
			nvidia.com/gpu.product=Tesla-T4-SHARED nvidia.com/gpu.count=4 nvidia.com/gpu.replicas=4
			nvidia.com/gpu.memory=15360 nvidia.com/gpu.sharing-strategy=time-slicing`},
		"slices as GPUs": {"nvidia.com/gpu: 7", `
			nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB-MIG-1g.5gb nvidia.com/gpu.count=7 nvidia.com/gpu.memory=4864
			nvidia.com/gpu.multiprocessors=14 nvidia.com/gpu.slices.gi=1 nvidia.com/gpu.slices.ci=1
			nvidia.com/gpu.engines.copy=1 nvidia.com/gpu.engines.decoder=1 nvidia.com/gpu.engines.encoder=1
			nvidia.com/gpu.engines.jpeg=0 nvidia.com/gpu.engines.ofa=0 nvidia.com/mig.strategy=single`},
		"slices under names of their own": {mig + ": 7", `nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB nvidia.com/gpu.count=1
			nvidia.com/gpu.replicas=0 nvidia.com/mig.strategy=mixed ` + mig + ".product=NVIDIA-A100-SXM4-40GB-MIG-1g.5gb " +
			mig + ".count=7 " + mig + ".memory=4864 " + mig + ".replicas=1 " + mig + ".multiprocessors=14 " +
			mig + ".slices.ci=1 " + mig + ".slices.gi=1 " + mig + ".engines.copy=1 " + mig + ".engines.decoder=1 " +
			mig + ".engines.encoder=1 " + mig + ".engines.jpeg=0 " + mig + ".engines.ofa=0"},
		"the GPU operator": {"nvidia.com/gpu: 1", `nvidia.com/gpu.product=Tesla-T4
			nvidia.com/gpu.present=true nvidia.com/gpu.deploy.driver=true nvidia.com/gpu.deploy.container-toolkit=true
			nvidia.com/gpu.deploy.device-plugin=true nvidia.com/gpu.deploy.gpu-feature-discovery=true
			nvidia.com/gpu.deploy.dcgm=true nvidia.com/gpu.deploy.dcgm-exporter=true nvidia.com/gpu.deploy.mig-manager=true
			nvidia.com/gpu.deploy.node-status-exporter=true nvidia.com/gpu.deploy.operator-validator=true
			nvidia.com/gpu.deploy.nvsm=true nvidia.com/mig.config=all-disabled nvidia.com/mig.config.state=success
			nvidia.com/device-plugin.config=default nvidia.com/gpu.workload.config=container
			nvidia.com/gpu-driver-upgrade-state=upgrade-done nvidia.com/gpu-driver-upgrade-enabled=true
			nvidia.com/vgpu.config=default nvidia.com/vgpu.config.state=success`},
		"AMD's labeller": {"amd.com/gpu: 8", `
			amd.com/gpu.cu-count=304 amd.com/gpu.device-id=74a1 amd.com/gpu.driver-version=6.10.5
			amd.com/gpu.driver-src-version=C7E6D8 amd.com/gpu.family=AI amd.com/gpu.product-name=AMD_Instinct_MI300X_OAM
			amd.com/gpu.simd-count=1216 amd.com/gpu.vram=192G amd.com/gpu.mode=container
			amd.com/gpu.compute-memory-partition=spx_nps1 amd.com/gpu.compute-partitioning-supported=true
			amd.com/gpu.memory-partitioning-supported=true amd.com/gpu.firmware=1 beta.amd.com/gpu.cu-count=304
			beta.amd.com/gpu.cu-count.304=8 beta.amd.com/gpu.device-id=74a1 beta.amd.com/gpu.device-id.74a1=8
			beta.amd.com/gpu.driver-version=6.10.5 beta.amd.com/gpu.family=AI beta.amd.com/gpu.family.AI=8
			beta.amd.com/gpu.firmware.SMC.fw.123=8 beta.amd.com/gpu.mode=container
			beta.amd.com/gpu.product-name=AMD_Instinct_MI300X_OAM beta.amd.com/gpu.product-name.AMD_Instinct_MI300X_OAM=8
			beta.amd.com/gpu.simd-count=1216 beta.amd.com/gpu.vram=192G beta.amd.com/gpu.vram.192G=8
			feature.node.kubernetes.io/amd-gpu=true`},
		"AMD's labeller, GPUs that differ": {"amd.com/gpu: 2", `amd.com/gpu=true
			amd.com/gpu.product-name=AMD_Instinct_MI300X_OAM
			amd.com/gpu.vram.16G=1 amd.com/gpu.vram.1G=1 amd.com/gpu.cu-count.2=1 amd.com/gpu.simd-count.4=1
			amd.com/gpu.family.AI=2 amd.com/gpu.device-id.740f=1`},
		"Intel": {"gpu.intel.com/i915: 2", `
			gpu.intel.com/product=Max_1550 gpu.intel.com/family=Max_Series gpu.intel.com/device.count=2
			gpu.intel.com/device-id.0380-0bd5.count=2 gpu.intel.com/device-id.0380-0bd5.present=true
			gpu.intel.com/millicores=2000 gpu.intel.com/memory.max=274877906944 gpu.intel.com/cards=card0.card1
			gpu.intel.com/gpu-numbers=0.1 gpu.intel.com/gpu-numbers2=2 gpu.intel.com/tiles=4 gpu.intel.com/numa-gpu-map=0-0_1-1
			gpu.intel.com/pci-groups=0.1 gpu.intel.com/platform_gen=12 gpu.intel.com/media_version=12.5
			gpu.intel.com/graphics_version=12.2 gpu.intel.com/platform_PVC.count=2 gpu.intel.com/platform_PVC.tiles=4
			gpu.intel.com/platform_PVC.present=true intel.feature.node.kubernetes.io/gpu=true`},
		"GKE": {"nvidia.com/gpu: 8", `
			cloud.google.com/gke-accelerator=nvidia-tesla-t4 cloud.google.com/gke-accelerator-count=1
			cloud.google.com/gke-gpu=true cloud.google.com/gke-gpu-driver-version=latest
			cloud.google.com/gke-gpu-sharing-strategy=time-sharing cloud.google.com/gke-max-shared-clients-per-gpu=8
			cloud.google.com/gke-nodepool=gpu cloud.google.com/gke-spot=true cloud.google.com/machine-family=n1`},
		"GKE's slices": {"nvidia.com/gpu: 7", `cloud.google.com/gke-accelerator=nvidia-tesla-a100
			cloud.google.com/gke-gpu-partition-size=1g.5gb cloud.google.com/gke-accelerator-count=1`},
		"Karpenter on EKS": {"nvidia.com/gpu: 8", `
			karpenter.k8s.aws/instance-gpu-name=a100 karpenter.k8s.aws/instance-gpu-count=8
			karpenter.k8s.aws/instance-gpu-memory=40960 karpenter.k8s.aws/instance-gpu-manufacturer=nvidia
			karpenter.k8s.aws/instance-family=p4d node.kubernetes.io/instance-type=p4d.24xlarge`},
		"EKS Auto Mode": {"nvidia.com/gpu: 1", `
			eks.amazonaws.com/instance-gpu-name=l4 eks.amazonaws.com/instance-gpu-count=1
			eks.amazonaws.com/instance-gpu-memory=22888 eks.amazonaws.com/instance-gpu-manufacturer=nvidia`},
		"AKS": {"nvidia.com/gpu: 1", `kubernetes.azure.com/accelerator=nvidia accelerator=nvidia
			karpenter.azure.com/sku-gpu-name=A100 karpenter.azure.com/sku-gpu-count=1
			karpenter.azure.com/sku-gpu-manufacturer=nvidia node.kubernetes.io/instance-type=Standard_NC24ads_A100_v4`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			labels := map[string]string{}
			for _, label := range strings.Fields(tt.labels) {
				labels[label[:strings.Index(label, "=")]] = label[strings.Index(label, "=")+1:]
			}
			sameBeginnings(t, findings(t, gpuNode(labels, tt.allocatable)), nil)
		})
	}
}

func TestLabelsThatAreMisspelt(t *testing.T) {
	t.Parallel()
	for label, meant := range map[string]string{
		"nvidia.com/gpu.prodct":          "nvidia.com/gpu.product",
		"nvidia.com/gpu.compute.minr":    "nvidia.com/gpu.compute.minor",
		"nvidia.com/gpu.compute.majr":    "nvidia.com/gpu.compute.major",
		"nvidia.com/gpu.compute":         "",
		"nvidia.com/gpu.replica":         "nvidia.com/gpu.replicas",
		"nvidia.com/gpu.memroy":          "nvidia.com/gpu.memory",
		"nvidia.com/gpu.sharing-stategy": "nvidia.com/gpu.sharing-strategy",
		"amd.com/gpu.product":            "amd.com/gpu.product-name",
		"amd.com/gpu.vran":               "amd.com/gpu.vram",
		"gpu.intel.com/memory":           "gpu.intel.com/memory.max",
		"gpu.intel.com/prodcut":          "gpu.intel.com/product",
		"nvidia.com/something-entirely":  "",
	} {
		const machine = "node.kubernetes.io/instance-type"
		line := 7
		if machine < label {
			line = 8
		}
		var want []string
		if meant != "" {
			want = []string{fmt.Sprintf("f.yaml:%d: warning: Node nn: label %s is not read; did you mean %s? (gpu)", line, label,
				meant)}
		}
		labels := map[string]string{label: "1", machine: "g5.xlarge"}
		sameBeginnings(t, findings(t, gpuNode(labels, "nvidia.com/gpu: 1")), want)
	}
}

func TestWhatIsSaidOfUnknownGPUs(t *testing.T) {
	t.Parallel()
	const (
		models, memory = "berth.dev/gpu-models", "berth.dev/gpu-memory-min"
		nv             = "nvidia.com/gpu: 1"
	)
	said := func(unknown, annotations, remedy string) []string {
		return []string{"f.yaml:3: warning: Node nn: the " + unknown + " of the node's GPUs cannot be told from its " +
			"labels: pods with " + annotations + " keep off them; " + remedy + " (gpu)"}
	}
	const discovery = "run GPU feature discovery, or label the node with "
	for name, tt := range map[string]struct {
		labels      map[string]string
		allocatable string
		want        []string
	}{
		"memory that is not the GPU's own": {map[string]string{"nvidia.com/gpu.product": "NVIDIA-GB10",
			"nvidia.com/gpu.compute.major": "12", "nvidia.com/gpu.compute.minor": "1", "nvidia.com/gpu.count": "1"}, nv,
			said("memory", memory,
				"label the node with nvidia.com/gpu.memory")},
		"time slices of such a GPU": {map[string]string{"nvidia.com/gpu.product": "NVIDIA-GB10-SHARED",
			"nvidia.com/gpu.replicas": "4"}, "nvidia.com/gpu: 4", said("memory", memory,
			"label the node with nvidia.com/gpu.memory")},
		"the same, set by hand": {map[string]string{"nvidia.com/gpu.product": "NVIDIA-GB10",
			"nvidia.com/gpu.memory": "122880"}, nv, nil},
		"AMD's, as its labeller says": {map[string]string{"amd.com/gpu.product-name": "AMD_Radeon_890M",
			"amd.com/gpu.vram": "0G"}, "amd.com/gpu: 1", said("memory", memory, "label the node with amd.com/gpu.vram")},
		"Intel's, as its labeller says": {map[string]string{"gpu.intel.com/product": "Arc_B580",
			"gpu.intel.com/memory.max": "0"}, "gpu.intel.com/xe: 1", said("memory", memory,
			"label the node with gpu.intel.com/memory.max")},
		"a model": {map[string]string{"nvidia.com/gpu.memory": "24576"}, nv, said("model", models,
			discovery+"nvidia.com/gpu.product")},
		"a model of a known memory in GiB": {map[string]string{"gpu-memory-gb": "24"}, nv, said("model", models,
			discovery+"nvidia.com/gpu.product")},
		"both": {nil, nv, said("model and the memory", models+" or "+memory,
			discovery+"nvidia.com/gpu.product and nvidia.com/gpu.memory")},
		"both, of AMD": {map[string]string{"beta.amd.com/gpu.vram.192G": "1"}, "amd.com/gpu: 1",
			said("model and the memory", models+" or "+memory, discovery+"amd.com/gpu.product-name and amd.com/gpu.vram")},
		"those of one of two makers": {map[string]string{"nvidia.com/gpu.product": "Tesla-T4"},
			"nvidia.com/gpu: 1, amd.com/gpu: 1", said("model and the memory", models+" or "+memory,
				discovery+"amd.com/gpu.product-name and amd.com/gpu.vram")},
		"slices, whose memory is in their names": {map[string]string{"nvidia.com/gpu.count": "1"}, "nvidia.com/mig-1g.5gb: 7",
			said("model", models, discovery+"nvidia.com/gpu.product")},
		"slices of a known model that no table has": {map[string]string{"nvidia.com/gpu.product": "NVIDIA-Z100-MIG-1g.5gb",
			"nvidia.com/gpu.count": "7", "nvidia.com/gpu.memory": "4864"}, "nvidia.com/gpu: 7", nil},
		"slices of an unknown geometry beside GPUs": {map[string]string{"nvidia.com/gpu.product": "Tesla-T4",
			"nvidia.com/gpu.count": "2"}, "nvidia.com/gpu: 1, nvidia.com/mig-small: 7", nil},
		"slices of an unknown geometry": {map[string]string{"nvidia.com/gpu.product": "NVIDIA-Z100"},
			"nvidia.com/mig-small: 7", said("memory", memory,
				"label the node with nvidia.com/gpu.memory")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sameBeginnings(t, findings(t, gpuNode(tt.labels, tt.allocatable)), tt.want)
		})
	}
}

func TestPodsAndNodesOfUnknownGPUs(t *testing.T) {
	t.Parallel()
	pod := func(annotation string) string {
		return "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  annotations:\n    " + annotation +
			"\nspec: {containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 1}}}]}\n"
	}
	node := func(label string) string {
		return "apiVersion: v1\nkind: Node\nmetadata: {name: nn, labels: {" + label +
			"}}\nstatus: {allocatable: {nvidia.com/gpu: 1, cpu: 8}}\n"
	}
	const (
		gb10    = "nvidia.com/gpu.product: NVIDIA-GB10"
		named   = "f.yaml:11: warning: Pod p: no node in the files has a GPU of the model "
		unknown = "f.yaml:3: warning: Node nn: the "
	)
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"the model of a GPU without memory": {node(gb10) + pod("berth.dev/gpu-models: NVIDIA-GB10"),
			[]string{unknown + "memory of"}},
		"another model": {node(gb10) + pod("berth.dev/gpu-models: Tesla-T4"), []string{unknown + "memory of",
			named + "Tesla-T4; the nodes have NVIDIA-GB10 (no-model)"}},
		"a model, where none is known": {node(`nvidia.com/gpu.memory: "24576"`) + pod("berth.dev/gpu-models: Tesla-T4"),
			[]string{unknown + "model of", named + "Tesla-T4; the nodes have an unknown model (no-model)"}},
		"a model that some may have": {node("a: b") + "---\n" + strings.Replace(node(gb10), "name: nn", "name: m", 1) +
			strings.Replace(pod("berth.dev/gpu-models: NVIDIA-GB10"), "name: p", "name: q", 1),
			[]string{unknown + "model and the memory of", "f.yaml:8: warning: Node m: the memory of"}},
		"memory, where only the memory is known": {node(`nvidia.com/gpu.memory: "24576"`) +
			pod("berth.dev/gpu-memory-min: 8Gi"), []string{unknown + "model of"}},
		"a node whose devices are claimed": {"apiVersion: v1\nkind: Node\nmetadata: {name: nn, labels: " +
			"{nvidia.com/gpu.count: \"1\", nvidia.com/gpu.memory: \"24576\"}}\nstatus: {allocatable: {cpu: 8}}\n" +
			strings.Replace(pod("berth.dev/gpu-models: Tesla-T4"), "nvidia.com/gpu: 1", "cpu: 1", 1),
			[]string{unknown + "model of"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sameBeginnings(t, findings(t, tt.text), tt.want)
		})
	}
}

func TestLabelsOfGPUsThatTheNodeDoesNotOffer(t *testing.T) {
	t.Parallel()
	for label, resource := range map[string]string{
		"nvidia.com/gpu.product":   "nvidia.com/gpu",
		"amd.com/gpu.product-name": "amd.com/gpu",
		"gpu.intel.com/product":    "gpu.intel.com/xe",
	} {
		sameBeginnings(t, findings(t, gpuNode(map[string]string{label: "x"}, "memory: 1Gi")), []string{
			"f.yaml:7: warning: Node nn: label " + label + " has no effect: the node has no GPUs, neither " + resource +
				" among its allocatable resources nor a label with their number (gpu)"})
	}
	sameBeginnings(t, findings(t, gpuNode(map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-INVALID",
		"nvidia.com/gpu.count": "0", "nvidia.com/gpu.replicas": "0", "nvidia.com/gpu.memory": "0"}, "memory: 1Gi")), []string{
		"f.yaml:9: warning: Node nn: label nvidia.com/gpu.product has no effect: the node has no GPUs"})
}

func TestReplicasThatAreNoNumber(t *testing.T) {
	t.Parallel()
	for replicas, good := range map[string]bool{"4096": true, "1": true, "0": true, "-4": false, "four": false,
		"4.0": false, "99999999999": false} {
		var want []string
		if !good {
			want = []string{"f.yaml:8: error: Node nn: metadata.labels[nvidia.com/gpu.replicas]: \"" + replicas +
				"\" is not a whole number from 0 to 2147483647 (value)"}
		}
		sameBeginnings(t, findings(t, gpuNode(map[string]string{"nvidia.com/gpu.product": "Tesla-T4-SHARED",
			"nvidia.com/gpu.replicas": replicas}, "nvidia.com/gpu: 4096")), want)
	}
}
