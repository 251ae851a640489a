package dump

import (
	"slices"
	"strings"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/cost/priceview"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/read/numbering"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/wellknown"
)

// rule says how the value at a path is hashed. Values without a rule stay.
type rule int

const (
	keep            rule = iota
	hashName             // a name or an identity, or a list of them
	hashValue            // the value of the label whose key is beside it
	hashLabels           // labels with their values
	hashAnnotations      // annotations
	hashMessage          // the message of a condition
	dropExpressions      // rules of a placement policy; those with expressions are left out
	drop
)

// paths are the fields that contain names: a field, or PARENT.FIELD, which takes precedence.
var paths = rulesFor(map[rule]string{
	hashName: `name namespace namespaces generateName uid podUID nodeName nominatedNodeName node nodeID volumeName
		claimName storageClassName persistentVolumeName priorityClassName runtimeClassName resourceClaimName
		resourceClaimTemplateName
		deviceClassName podGroupName groupName workloadName templateName parentCompositePodGroupName serviceName statefulSet
		containerName containers pool device shareID counterSet volumeHandle pdName volumeID diskName diskURI iqn
		targetPortal monitors license dataset reservedNodes hostIP image pod`,
	hashValue:       `value values`,
	hashLabels:      `labels matchLabels nodeSelector selector`,
	hashAnnotations: `metadata.annotations`,
	hashMessage:     `conditions.message`,
	dropExpressions: `spec.licenses spec.datasets spec.compliance`,
	drop:            `status.images disruptedPods minTaskMember`,
	// Names of gates, drivers, runtime handlers, and of requests within a claim.
	keep: `schedulingGates.name drivers.name runtimeHandlers.name requests.name firstAvailable.name`,
})

func rulesFor(lists map[rule]string) map[string]rule {
	rules := map[string]rule{}
	for rule, list := range lists {
		for _, path := range strings.Fields(list) {
			rules[path] = rule
		}
	}
	return rules
}

// keptNames are the same in every cluster.
var keptNames = []string{"default", "kube-system", "kube-public", "kube-node-lease", "0.0.0.0", read.RayHead, ""}

// nameAnnotations are those that are kept and hold names of objects, with numbers or without: of a node, a claim, a
// pool, a group, licenses or datasets.
var nameAnnotations = append(read.NameAnnotations(), gpuview.HAMiNodeKey, wellknown.IPPoolKey,
	wellknown.LicensesKey, wellknown.DatasetsKey, "volume.kubernetes.io/selected-node",
	"resource.kubernetes.io/pod-claim-name")

// openPrefixes begin the keys of labels that describe hardware, price or place in terms that every cluster uses.
var openPrefixes = []string{
	"topology.kubernetes.io/", "failure-domain.beta.kubernetes.io/", "node.kubernetes.io/", "node-role.kubernetes.io/",
	"beta.kubernetes.io/", "nvidia.com/", "amd.com/", "gpu.intel.com/", "network.topology.nvidia.com/",
	"accelerator.topograph.run/", "fabric.topograph.run/", "karpenter.k8s.aws/instance-", "berth.dev/",
}

var openKeys = append(append(gpuview.ProviderLabels(), capacityLabels()...),
	"kubernetes.io/os", "kubernetes.io/arch", "gpu-memory-gb", "gpu-interconnect", "gpu-generation", "gpu-type",
	priceview.NodeCostPerHourLabel, gpuview.WorkloadTypeLabel, read.MinAvailableLabel, read.TrainingOperatorLabel,
	read.ReplicaTypeLabel, read.MPIRoleLabel,
)

// capacityLabels are the labels that mark spot nodes.
func capacityLabels() []string {
	var keys []string
	for _, rule := range priceview.DefaultCapacityRules() {
		keys = append(keys, rule.Label)
	}
	return keys
}

// openLabel reports whether a dump may show the values of a label: they describe hardware, price or place in terms that
// every cluster uses, or number the pods of a set.
func openLabel(key string) bool {
	return key != schedulingv1alpha1.PodGroupLabel && key != wellknown.GroupKey &&
		(slices.Contains(openKeys, key) || numbering.IsOrdinal(key) ||
			slices.ContainsFunc(openPrefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) }))
}
