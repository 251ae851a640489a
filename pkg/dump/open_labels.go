package dump

import (
	"slices"
	"strings"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/gpuview"
	"berth.dev/berth/pkg/priceview"
	"berth.dev/berth/pkg/wellknown"
)

// nameAnnotations are those that are kept and hold one name of an object: of a node, a claim, a pool or a group.
func nameAnnotations() []string {
	return append(gangview.NameAnnotations(), gpuview.HAMiNodeKey, wellknown.IPPoolKey,
		"volume.kubernetes.io/selected-node", "resource.kubernetes.io/pod-claim-name")
}

// modelAnnotations are those that are kept and list models of GPUs.
func modelAnnotations() []string { return []string{wellknown.GPUModelsKey, gpuview.OpenbModelKey} }

// openPrefixes begin the keys of labels that describe hardware, price or place in terms that every cluster uses.
var openPrefixes = []string{
	"topology.kubernetes.io/", "failure-domain.beta.kubernetes.io/", "node.kubernetes.io/", "node-role.kubernetes.io/",
	"beta.kubernetes.io/",
	"nvidia.com/", "amd.com/", "gpu.intel.com/", "network.topology.nvidia.com/", "accelerator.topograph.run/",
	"fabric.topograph.run/",
	"karpenter.k8s.aws/instance-", "berth.dev/",
}

var openKeys = []string{
	"kubernetes.io/os", "kubernetes.io/arch", "gpu-memory-gb", "gpu-interconnect", "gpu-generation", "gpu-type",
	priceview.NodeCostPerHourLabel, gpuview.WorkloadTypeLabel, gangview.MinAvailableLabel, gangview.TrainingOperatorLabel,
}

// openLabel says whether the values of a label describe hardware, price or place in terms that every cluster uses, so
// that a dump may show them.
func openLabel(key string) bool {
	if key == schedulingv1alpha1.PodGroupLabel {
		return false
	}
	return slices.Contains(openKeys, key) ||
		slices.ContainsFunc(openPrefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) ||
		slices.Contains(gpuview.ProviderLabels(), key) ||
		slices.ContainsFunc(priceview.DefaultCapacityRules(), func(r priceview.CapacityRule) bool { return r.Label == key })
}
