// Package rights owns the table of the rights that the scheduler needs, what needs each, and what is lost without it.
//
// "berth validate --cluster", the scheduler's own check at its start and the test of the shipped roles read it. It asks
// the API server which rights an account has, and never grants any.
package rights

import (
	"fmt"
	"slices"
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

// Need is a right that is needed.
type Need struct {
	// Group is the API group, empty for the core group; Resource may have a subresource, as in pods/status.
	Group    string `json:"apiGroup"`
	Resource string `json:"resource"`
	Verb     string `json:"verb"`
	// Namespace and Name limit the need to one namespace or object; empty means all.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"resourceName,omitempty"`
	Weight    Weight `json:"weight"`
	// For names the plugins and features that need the right. A configuration with one of them has the need.
	For []string `json:"neededBy"`
	// Lost says what does not work without the right.
	Lost string `json:"lost"`
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

var (
	view   = []string{"get", "list", "watch"}
	create = []string{"create"}
	patch  = []string{"patch"}
	update = []string{"patch", "update"}
	record = []string{"create", "patch", "update"}
	manage = []string{"create", "patch", "delete"}
)

// Lost features that several rights share.
const (
	noScheduling   = "nothing is scheduled"
	noPreemption   = "no pod is evicted for another"
	noVolumes      = "pods with persistent volumes stay pending"
	noDevices      = "pods with resource claims stay pending"
	noGroups       = "pods of PodGroups are not held together; PodGroups are taken for missing"
	noAddresses    = "pods that ask for a fixed address stay pending"
	noNativeStatus = "native groups do not show their status"
	noSpread       = "default constraints of PodTopologySpread, which the shipped profiles do not have, do not spread " +
		"the pods of such objects"
)

// needs is the table. For adds what depends on the configuration besides, such as the lease.
func needs() []Need {
	return slices.Concat(awaited(), ofKubernetes(), ofBerth(), gangOwners(), groups())
}

// need is rights to all objects of the resource in all namespaces.
func need(group, resource string, verbs []string, weight Weight, lost string, features ...string) []Need {
	var all []Need
	for _, verb := range verbs {
		all = append(all, Need{Group: group, Resource: resource, Verb: verb, For: features, Weight: weight, Lost: lost})
	}
	return all
}

// awaited are the kinds for whose informers the scheduler waits at its start.
func awaited() []Need {
	var all []Need
	add := func(group string, resources []string, features ...string) {
		for _, resource := range resources {
			all = append(all, need(group, resource, view, Vital, noScheduling, features...)...)
		}
	}
	// Without the labels of namespaces, anti-affinity and placement policies across namespaces would be broken silently.
	add("", []string{"nodes", "namespaces", "pods"}, Always)
	add("resource.k8s.io", []string{"deviceclasses", "resourceslices", "devicetaintrules", "resourceclaims"}, Always)
	add("storage.k8s.io", []string{"csinodes"}, Always)
	add("", []string{"persistentvolumeclaims", "persistentvolumes"}, volumeBinding, volumeLimits)
	add("storage.k8s.io", []string{"storageclasses", "csidrivers"}, volumeBinding, volumeLimits)
	add("storage.k8s.io", []string{"csistoragecapacities"}, volumeBinding)
	add("storage.k8s.io", []string{"volumeattachments"}, volumeLimits)
	add("policy", []string{"poddisruptionbudgets"}, preemption, coscheduling)
	add("scheduling.k8s.io", []string{"podgroups", "compositepodgroups"}, NativeGroups)
	return all
}

// ofKubernetes is what else the scheduler and its own plugins need. The shipped manifests grant the writes to volumes
// by the stock role system:volume-scheduler.
func ofKubernetes() []Need {
	certificates := need("", "configmaps", view, Feature,
		"requests for metrics with a client certificate or through the API server are refused", Metrics)
	for i := range certificates {
		certificates[i].Namespace, certificates[i].Name = "kube-system", "extension-apiserver-authentication"
	}
	return slices.Concat(
		need("", "pods/binding", create, Vital, noScheduling, Always),
		need("", "bindings", create, Conditional,
			"an API server that authorizes bindings by their old name refuses them", Always),
		need("", "pods/status", update, Feature,
			"pods do not say why they are pending, preemption nominates no node, and pods that ask for a share of a GPU, for "+
				"devices of a shared node or for a fixed address stay pending", Always),
		need("", "events", record, Feature, "events of leader election are not written", Always),
		need("events.k8s.io", "events", record, Feature, "events about pods are not written", Always),
		need("", "pods", []string{"delete"}, Feature, noPreemption, preemption, coscheduling),
		need("", "services", view, Conditional, noSpread, spread),
		need("", "replicationcontrollers", view, Conditional, noSpread, spread),
		need("apps", "replicasets", view, Conditional, noSpread, spread),
		need("apps", "statefulsets", view, Conditional, noSpread, spread),
		need("", "persistentvolumeclaims", update, Feature, noVolumes, volumeBinding),
		need("", "persistentvolumes", update, Feature, noVolumes, volumeBinding),
		need("resource.k8s.io", "resourceclaims", []string{"create", "update", "patch", "delete"}, Feature, noDevices,
			devices),
		need("resource.k8s.io", "resourceclaims/status", slices.Concat(view, update), Feature, noDevices, devices),
		need("resource.k8s.io", "resourceclaims/binding", update, Feature, noDevices, devices),
		need("", "pods/finalizers", []string{"update"}, Feature,
			"extended resources that a DeviceClass serves are not given out", devices),
		need("scheduling.k8s.io", "podgroups/status", update, Feature, noNativeStatus, NativeGroups),
		need("scheduling.k8s.io", "compositepodgroups/status", update, Feature, noNativeStatus, NativeGroups),
		need("authentication.k8s.io", "tokenreviews", create, Feature, "requests for metrics with a token are refused",
			Metrics),
		need("authorization.k8s.io", "subjectaccessreviews", create, Feature, "requests for metrics are refused", Metrics),
		certificates,
	)
}

// ofBerth is what Berth's plugins need, without the kinds of gangs.
func ofBerth() []Need {
	return slices.Concat(
		need("", "nodes", patch, Conditional, "pods are not bound to nodes whose GPUs HAMi's device plugin gives out",
			gpuAware),
		need("berth.dev", "devices", []string{"assign"}, Conditional,
			"where manifests/admission is installed, the devices chosen for a pod are refused", gpuAware),
		need("scheduling.x-k8s.io", "podgroups", view, Feature, noGroups, coscheduling),
		need("scheduling.x-k8s.io", "podgroups", manage, Feature,
			"no PodGroup is generated for pods that carry their group's minimum in labels", coscheduling),
		need("scheduling.x-k8s.io", "podgroups/status", update, Feature, "PodGroups do not show their phase", coscheduling),
		need("berth.dev", "placementpolicies", view, Feature, "placement policies are not applied", placementPolicy),
		need("berth.dev", "placementpolicies/status", patch, Feature, "placement policies do not show their status",
			placementPolicy),
		need("berth.dev", "ippools", view, Feature, noAddresses, ipReservation),
		need("berth.dev", "ippools/status", patch, Feature, "pools of addresses do not show their status", ipReservation),
		need("berth.dev", "ipreservations", slices.Concat(view, manage), Feature, noAddresses, ipReservation),
		need("apps", "statefulsets", view, Vital, noScheduling, ipReservation),
	)
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
		all = append(all, need(kind.Group, kind.Resource, view, Conditional, lost, coscheduling)...)
	}
	return all
}

// groups are the kinds of groups of Kubernetes itself and of other schedulers.
func groups() []Need {
	var all []Need
	for _, kind := range read.GroupKinds() {
		all = append(all, need(kind.Group, kind.Resource, view, Conditional,
			"pods that name a "+kind.Title()+" stay pending", coscheduling)...)
		if status := kind.StatusResource(); status != "" {
			all = append(all, need(kind.Group, status, patch, Conditional,
				"a "+kind.Title()+" does not show the state of its gang", coscheduling)...)
		}
	}
	return all
}

// Right names the right as a rule would: verb, resource and group.
func (n Need) Right() string {
	text := n.Verb + " " + Qualified(n.Group, n.Resource)
	if n.Name != "" {
		text += " " + n.Name
	}
	if n.Namespace != "" {
		text += " in " + n.Namespace
	}
	return text
}

// String is the right with what needs it and what is lost.
func (n Need) String() string {
	return fmt.Sprintf("%s (%s): %s", n.Right(), strings.Join(n.For, ", "), n.Lost)
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
