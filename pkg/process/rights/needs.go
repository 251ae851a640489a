// Package rights knows which rights of the API server the scheduler needs, what needs them, and what is lost without
// them.
//
// The table in this file is the only list. The preflight of "berth validate --cluster", the scheduler's own check at
// its start and the test of the shipped roles all read it.
package rights

import (
	"strings"

	"berth.dev/berth/pkg/gang/read"
)

// Weight says how much is lost without a right.
type Weight string

// Weights of a right, from the heaviest to the lightest.
const (
	// Vital rights are those without which nothing is scheduled. Reading a kind is vital to a plugin whose informer the
	// scheduler waits for.
	Vital Weight = "vital"
	// Feature rights are those without which one plugin, or one feature of it, does not work.
	Feature Weight = "feature"
	// Conditional rights are needed only in some clusters, which the right's text names.
	Conditional Weight = "conditional"
)

// Need is a set of rights to one resource that are needed for the same reason.
type Need struct {
	// Group is the API group, empty for the core group; Resource may have a subresource, as in pods/status.
	Group, Resource string
	// Namespace and Name limit the need to one namespace or object; empty means all.
	Namespace, Name string
	Verbs           []string
	// For names the plugins and features that need the rights. One of them in a configuration makes the need its own.
	For    []string
	Weight Weight
	// Lost says what does not work without one of the rights.
	Lost string
}

// Features of the scheduler that are not plugins.
const (
	Always         = "kube-scheduler"
	LeaderElection = "leader election"
	Metrics        = "metrics authentication"
	NativeGroups   = "GenericWorkload"
)

// Names of plugins, ours and stock. A list here would otherwise depend on every plugin.
const (
	gpuAware        = "GPUAware"
	coscheduling    = "Coscheduling"
	placementPolicy = "PlacementPolicy"
	ipReservation   = "IPReservation"
	spread          = "PodTopologySpread"
	preemption      = "DefaultPreemption"
	volumeBinding   = "VolumeBinding"
	volumeLimits    = "NodeVolumeLimits"
	devices         = "DynamicResources"
)

func view() []string { return []string{"get", "list", "watch"} }

// Lost features that several rights share.
const (
	noScheduling = "nothing is scheduled"
	noPreemption = "no pod is evicted for another"
	noVolumes    = "pods with persistent volumes stay pending"
	noDevices    = "pods with resource claims stay pending"
	noGroups     = "pods of PodGroups are not held together; PodGroups are taken for missing"
	noAddresses  = "pods that ask for a fixed address stay pending"
	noSpread     = "default constraints of PodTopologySpread, which the shipped profiles do not have, do not spread the " +
		"pods of such objects"
)

// needs is the table. Needs that depend on the configuration besides, such as those of the lease, are made by For.
func needs() []Need {
	all := []Need{
		{"", "nodes", "", "", view(), []string{Always}, Vital, noScheduling},
		// Without their labels, anti-affinity and placement policies across namespaces would be broken silently.
		{"", "namespaces", "", "", view(), []string{Always}, Vital, noScheduling},
		{"", "pods", "", "", view(), []string{Always}, Vital, noScheduling},
		{"", "pods/binding", "", "", []string{"create"}, []string{Always}, Vital, noScheduling},
		{"", "bindings", "", "", []string{"create"}, []string{Always}, Conditional,
			"an API server that authorizes bindings by their old name refuses them"},
		{"", "pods/status", "", "", []string{"patch", "update"}, []string{Always}, Feature,
			"pods do not say why they are pending, preemption nominates no node, and pods that ask for a share of a GPU, for " +
				"devices of a shared node or for a fixed address stay pending"},
		{"", "events", "", "", []string{"create", "patch", "update"}, []string{Always}, Feature,
			"events of leader election are not written"},
		{"events.k8s.io", "events", "", "", []string{"create", "patch", "update"}, []string{Always}, Feature,
			"events about pods are not written"},
		{"", "pods", "", "", []string{"delete"}, []string{preemption, coscheduling}, Feature, noPreemption},
		{"policy", "poddisruptionbudgets", "", "", view(), []string{preemption, coscheduling}, Vital, noScheduling},
		{"", "nodes", "", "", []string{"patch"}, []string{gpuAware}, Conditional,
			"pods are not bound to nodes whose GPUs HAMi's device plugin gives out"},
		{"berth.dev", "devices", "", "", []string{"assign"}, []string{gpuAware}, Conditional,
			"where manifests/admission is installed, the devices chosen for a pod are refused"},
		{"scheduling.x-k8s.io", "podgroups", "", "", view(), []string{coscheduling}, Feature, noGroups},
		{"scheduling.x-k8s.io", "podgroups", "", "", []string{"create", "patch", "delete"}, []string{coscheduling}, Feature,
			"no PodGroup is generated for pods that carry their group's minimum in labels"},
		{"scheduling.x-k8s.io", "podgroups/status", "", "", []string{"patch", "update"}, []string{coscheduling}, Feature,
			"PodGroups do not show their phase"},
		{"berth.dev", "placementpolicies", "", "", view(), []string{placementPolicy}, Feature,
			"placement policies are not applied"},
		{"berth.dev", "placementpolicies/status", "", "", []string{"patch"}, []string{placementPolicy}, Feature,
			"placement policies do not show their status"},
		{"berth.dev", "ippools", "", "", view(), []string{ipReservation}, Feature, noAddresses},
		{"berth.dev", "ippools/status", "", "", []string{"patch"}, []string{ipReservation}, Feature,
			"pools of addresses do not show their status"},
		{"berth.dev", "ipreservations", "", "", append(view(), "create", "patch", "delete"), []string{ipReservation}, Feature,
			noAddresses},
		{"", "services", "", "", view(), []string{spread}, Conditional, noSpread},
		{"", "replicationcontrollers", "", "", view(), []string{spread}, Conditional, noSpread},
		{"apps", "replicasets", "", "", view(), []string{spread}, Conditional, noSpread},
		{"apps", "statefulsets", "", "", view(), []string{spread}, Conditional, noSpread},
		{"apps", "statefulsets", "", "", view(), []string{ipReservation}, Vital, noScheduling},
	}
	all = append(all, storage()...)
	all = append(all, dynamicResources()...)
	for _, resource := range []string{"podgroups", "compositepodgroups"} {
		all = append(all,
			Need{"scheduling.k8s.io", resource, "", "", view(), []string{NativeGroups}, Vital, noScheduling},
			Need{"scheduling.k8s.io", resource + "/status", "", "", []string{"patch", "update"}, []string{NativeGroups}, Feature,
				"native groups do not show their status"})
	}
	all = append(all,
		Need{"authentication.k8s.io", "tokenreviews", "", "", []string{"create"}, []string{Metrics}, Feature,
			"requests for metrics with a token are refused"},
		Need{"authorization.k8s.io", "subjectaccessreviews", "", "", []string{"create"}, []string{Metrics}, Feature,
			"requests for metrics are refused"},
		Need{"", "configmaps", "kube-system", "extension-apiserver-authentication", view(), []string{Metrics}, Feature,
			"requests for metrics with a client certificate or through the API server are refused"})
	return append(append(all, gangOwners()...), groups()...)
}

// storage has what volumes need; the shipped manifests grant the writes by the stock role system:volume-scheduler.
func storage() []Need {
	return []Need{
		{"", "persistentvolumeclaims", "", "", view(), []string{volumeBinding, volumeLimits}, Vital, noScheduling},
		{"", "persistentvolumes", "", "", view(), []string{volumeBinding, volumeLimits}, Vital, noScheduling},
		{"", "persistentvolumeclaims", "", "", []string{"patch", "update"}, []string{volumeBinding}, Feature, noVolumes},
		{"", "persistentvolumes", "", "", []string{"patch", "update"}, []string{volumeBinding}, Feature, noVolumes},
		{"storage.k8s.io", "storageclasses", "", "", view(), []string{volumeBinding, volumeLimits}, Vital, noScheduling},
		{"storage.k8s.io", "csidrivers", "", "", view(), []string{volumeBinding, volumeLimits}, Vital, noScheduling},
		{"storage.k8s.io", "csistoragecapacities", "", "", view(), []string{volumeBinding}, Vital, noScheduling},
		// The scheduler reads these for whatever plugins there are.
		{"storage.k8s.io", "csinodes", "", "", view(), []string{Always}, Vital, noScheduling},
		{"storage.k8s.io", "volumeattachments", "", "", view(), []string{volumeLimits}, Vital, noScheduling},
	}
}

func dynamicResources() []Need {
	plugin, always := []string{devices}, []string{Always}
	return []Need{
		{"resource.k8s.io", "deviceclasses", "", "", view(), always, Vital, noScheduling},
		{"resource.k8s.io", "resourceslices", "", "", view(), always, Vital, noScheduling},
		{"resource.k8s.io", "devicetaintrules", "", "", view(), always, Vital, noScheduling},
		{"resource.k8s.io", "resourceclaims", "", "", view(), always, Vital, noScheduling},
		{"resource.k8s.io", "resourceclaims", "", "", []string{"create", "update", "patch", "delete"}, plugin, Feature,
			noDevices},
		{"resource.k8s.io", "resourceclaims/status", "", "", append(view(), "update", "patch"), plugin, Feature, noDevices},
		{"resource.k8s.io", "resourceclaims/binding", "", "", []string{"update", "patch"}, plugin, Feature, noDevices},
		{"", "pods/finalizers", "", "", []string{"update"}, plugin, Feature,
			"extended resources that a DeviceClass serves are not given out"},
	}
}

// gangOwners are the kinds whose pods can be made gangs.
func gangOwners() []Need {
	var all []Need
	for _, kind := range read.OwnerKinds() {
		lost := "gangs made of a " + kind.Kind + " (berth.dev/gang, gangOwners) do not start"
		if kind.Kind == "LeaderWorkerSet" {
			// Its size is on the pods.
			lost = "a gang of a LeaderWorkerSet does not say that it waits for its leader"
		}
		all = append(all, Need{kind.Group, kind.Resource, "", "", view(), []string{coscheduling}, Conditional, lost})
	}
	return all
}

// groups are the kinds of groups of Kubernetes itself and of other schedulers.
func groups() []Need {
	var all []Need
	for _, kind := range read.GroupKinds() {
		all = append(all, Need{kind.Group, kind.Resource, "", "", view(), []string{coscheduling}, Conditional,
			"pods that name a " + kind.Title() + " stay pending"})
		if status := kind.StatusResource(); status != "" {
			all = append(all, Need{kind.Group, status, "", "", []string{"patch"}, []string{coscheduling}, Conditional,
				"a " + kind.Title() + " does not show the state of its gang"})
		}
	}
	return all
}

// String names the rights as a rule would: verbs, resource and group.
func (n Need) String() string {
	text := strings.Join(n.Verbs, ",") + " " + Qualified(n.Group, n.Resource)
	if n.Name != "" {
		text += " " + n.Name
	}
	if n.Namespace != "" {
		text += " in " + n.Namespace
	}
	return text
}

// Qualified names a resource with its group, as kubectl does: jobs.batch, pods/status.
func Qualified(group, resource string) string {
	if group == "" {
		return resource
	}
	name, sub, nested := strings.Cut(resource, "/")
	name += "." + group
	if nested {
		name += "/" + sub
	}
	return name
}
