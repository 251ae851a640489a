package dump

import (
	"slices"
	"strings"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/gpuview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/priceview"
	"berth.dev/berth/pkg/wellknown"
)

// rule says what becomes of the value at a path. Unlisted values stay.
type rule int

const (
	keep            rule = iota
	hashName             // a name or an identity, or a list of them
	hashImage            // the name of an image
	hashIdentity         // the identity of a device, of any form
	hashValue            // the value of the label whose key is beside it
	hashLabels           // labels with their values
	hashKeys             // anything by names
	hashAnnotations      // annotations
	dropMessage          // the message of a condition
)

// paths are the ends of the paths at which names are in objects: a field, or a field and the one that holds it, which
// goes before.
var paths = rulesFor(map[rule]string{
	hashName: `name namespace namespaces generateName uid podUID nodeName nominatedNodeName node nodeID volumeName claimName
		storageClassName persistentVolumeName priorityClassName runtimeClassName resourceClaimName resourceClaimTemplateName
		deviceClassName podGroupName workloadName templateName parentCompositePodGroupName serviceName statefulSet
		containerName containers pool device shareID counterSet volumeHandle pdName volumeID diskName diskURI iqn
		targetPortal monitors license dataset reservedNodes hostIP`,
	hashImage:       `image images.names`,
	hashValue:       `value values`,
	hashLabels:      `labels matchLabels nodeSelector selector`,
	hashKeys:        `disruptedPods minTaskMember`,
	hashAnnotations: `metadata.annotations`,
	dropMessage:     `conditions.message`,
	// Gates, drivers, and what a claim calls its requests.
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
var keptNames = []string{"default", "kube-system", "kube-public", "kube-node-lease", "0.0.0.0", ""}

// nameAnnotations are those that are kept and hold one name of an object: of a node, a claim, a pool or a group.
func nameAnnotations() []string {
	return append(gangview.NameAnnotations(), gpuview.HAMiNodeKey, wellknown.IPPoolKey,
		"volume.kubernetes.io/selected-node", "resource.kubernetes.io/pod-claim-name")
}

// annotations hashes names in annotations. Which price windows there are is in the configuration, which a dump does not
// hold: without the name the pod may start.
func (h *NameHasher) annotations(all map[string]any) {
	delete(all, wellknown.StartWindowKey)
	h.groups(all)
	hash := map[string]func(string) string{
		wellknown.GPUAssignedKey: func(v string) string { return gpuview.RenameGrant(v, h.name) },
		wellknown.LicensesKey:    func(v string) string { return podview.MapLicenses(v, h.name) },
		wellknown.DatasetsKey:    func(v string) string { return podview.MapDatasets(v, h.name) },
	}
	for _, key := range nameAnnotations() {
		hash[key] = h.name
	}
	for key, value := range all {
		if text, ok := value.(string); ok {
			if hash[key] != nil {
				text = hash[key](text)
			}
			all[key] = h.text(text)
		}
	}
}

// openPrefixes begin the keys of labels that describe hardware, price or place in terms that every cluster uses.
var openPrefixes = []string{
	"topology.kubernetes.io/", "failure-domain.beta.kubernetes.io/", "node.kubernetes.io/", "node-role.kubernetes.io/",
	"beta.kubernetes.io/", "nvidia.com/", "amd.com/", "gpu.intel.com/", "network.topology.nvidia.com/",
	"accelerator.topograph.run/", "fabric.topograph.run/", "karpenter.k8s.aws/instance-", "berth.dev/",
}

var openKeys = append(append(gpuview.ProviderLabels(), capacityLabels()...),
	"kubernetes.io/os", "kubernetes.io/arch", "gpu-memory-gb", "gpu-interconnect", "gpu-generation", "gpu-type",
	priceview.NodeCostPerHourLabel, gpuview.WorkloadTypeLabel, gangview.MinAvailableLabel, gangview.TrainingOperatorLabel,
)

// capacityLabels say whether a node is spot.
func capacityLabels() []string {
	var keys []string
	for _, rule := range priceview.DefaultCapacityRules() {
		keys = append(keys, rule.Label)
	}
	return keys
}

// openLabel says whether the values of a label describe hardware, price or place in terms that every cluster uses, so
// that a dump may show them.
func openLabel(key string) bool {
	return key != schedulingv1alpha1.PodGroupLabel && (slices.Contains(openKeys, key) ||
		slices.ContainsFunc(openPrefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) }))
}
