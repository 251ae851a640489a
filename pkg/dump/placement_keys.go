package dump

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/gpuview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/priceview"
	"berth.dev/berth/pkg/wellknown"
)

// PlacementAnnotations returns the annotations that decide about placement.
func PlacementAnnotations() []string { return slices.Clone(placementAnnotations) }

var placementAnnotations = append([]string{
	wellknown.SpotKey, wellknown.PricePerHourKey, wellknown.StartWindowKey, wellknown.DeadlineKey, wellknown.SLAClassKey, wellknown.SLOLatencyKey, wellknown.SLOThroughputKey, wellknown.LicensesKey, wellknown.DatasetsKey, wellknown.IPPoolKey,
	wellknown.GangKey, wellknown.MinMembersByRoleKey, wellknown.RoleLabelKey, wellknown.TopologyRequiredKey, wellknown.TopologyPreferredKey, wellknown.BackfillKey, wellknown.MixedModelsKey, wellknown.NearKey, gangview.LeaderWorkerSetSizeKey,
	"cluster-autoscaler.kubernetes.io/scale-down-disabled", "karpenter.sh/do-not-disrupt", podview.EvictableKey,
	v1.MirrorPodAnnotationKey,
	"batch.kubernetes.io/job-completion-index",
	"storageclass.kubernetes.io/is-default-class",
	"storage.alpha.kubernetes.io/migrated-plugins",
	"volume.kubernetes.io/selected-node",
	"pv.kubernetes.io/bind-completed",
	"pv.kubernetes.io/bound-by-controller",
	"resource.kubernetes.io/pod-claim-name",
	"resource.kubernetes.io/extended-resource-claim",
}, gpuview.Annotations...)

// NameAnnotations returns those of them that hold one name of an object: of a node, a claim or a pool.
func NameAnnotations() []string {
	return []string{gpuview.HAMiNodeKey, wellknown.IPPoolKey, "volume.kubernetes.io/selected-node", "resource.kubernetes.io/pod-claim-name"}
}

// ModelAnnotations returns those of them that list models of GPUs.
func ModelAnnotations() []string { return []string{wellknown.GPUModelsKey, gpuview.OpenbModelKey} }

// openPrefixes begin the keys of labels that describe hardware, price or place in terms that every cluster uses.
var openPrefixes = []string{
	"topology.kubernetes.io/", "failure-domain.beta.kubernetes.io/", "node.kubernetes.io/", "node-role.kubernetes.io/", "beta.kubernetes.io/",
	"nvidia.com/", "amd.com/", "gpu.intel.com/", "network.topology.nvidia.com/", "accelerator.topograph.run/", "fabric.topograph.run/",
	"karpenter.k8s.aws/instance-", "berth.dev/",
}

var openKeys = []string{
	"kubernetes.io/os", "kubernetes.io/arch", "gpu-memory-gb", "gpu-interconnect", "gpu-generation", "gpu-type",
	priceview.NodeCostPerHourLabel, gpuview.WorkloadTypeLabel, gangview.MinAvailableLabel, gangview.TrainingOperatorLabel,
}

// OpenLabel says whether the values of a label describe hardware, price or place in terms that every cluster uses, so that
// a dump may show them.
func OpenLabel(key string) bool {
	if key == schedulingv1alpha1.PodGroupLabel {
		return false
	}
	return slices.Contains(openKeys, key) ||
		slices.ContainsFunc(openPrefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) ||
		slices.Contains(gpuview.ProviderLabels(), key) ||
		slices.ContainsFunc(priceview.DefaultCapacityRules(), func(r priceview.CapacityRule) bool { return r.Label == key })
}
