// Package inputs defines what the tool reads of a cluster: which kinds, and which fields of each object. Reader lists
// or watches a live cluster; Keep selects the fields that a scheduler reads.
//
// Dumps, simulations and the overview use it. Fields are copied one by one, so that all others, such as environment
// variables and names of Secrets, are left out. It never writes to a cluster.
package inputs

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	berthv1alpha1 "berth.dev/berth/pkg/apis/berth/v1alpha1"
	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang/read"
)

// Kind is a kind of objects that is read.
type Kind struct {
	schema.GroupVersionResource
	Kind string
	// Dumped kinds are read by a scheduler, Shown ones by an overview.
	Dumped, Shown bool
	// Required kinds have to be readable. Without one of the others a dump is less exact.
	Required bool
	// Foreign kinds are not reported as missing: most clusters do not serve them, or serve one of several versions.
	Foreign bool
	// Cluster is set for custom resources without a namespace.
	Cluster bool
	// untyped kinds are read as unstructured objects even if there is a Go type.
	untyped bool
	// served and Namespaced come from the discovery of the server.
	served, Namespaced bool
}

// types has the kinds with a Go type.
var types = func() *runtime.Scheme {
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, schedulingv1alpha1.AddToScheme,
		berthv1alpha1.AddToScheme} {
		utilruntime.Must(add(types))
	}
	return types
}()

var codecs = serializer.NewCodecFactory(types).WithoutConversion()

// Kinds lists the kinds that a scheduler reads, in the order of a dump: an object follows those that it refers to.
func Kinds() []Kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k Kind) bool { return !k.Dumped })
}

// kinds are all kinds that are read. A kind follows those that it refers to; the preferred version comes first.
var kinds = func() (kinds []Kind) {
	add := func(gv schema.GroupVersion, resource, kind string) *Kind {
		kinds = append(kinds, Kind{GroupVersionResource: gv.WithResource(resource), Kind: kind, Dumped: true})
		return &kinds[len(kinds)-1]
	}
	foreign := func(gv schema.GroupVersion, resource, kind string) *Kind {
		k := add(gv, resource, kind)
		k.Foreign = true
		return k
	}
	add(v1.SchemeGroupVersion, "namespaces", "Namespace")
	add(schedulingv1.SchemeGroupVersion, "priorityclasses", "PriorityClass")
	nodes := add(v1.SchemeGroupVersion, "nodes", "Node")
	nodes.Required, nodes.Shown = true, true
	add(storagev1.SchemeGroupVersion, "csinodes", "CSINode")
	add(storagev1.SchemeGroupVersion, "csidrivers", "CSIDriver")
	add(storagev1.SchemeGroupVersion, "storageclasses", "StorageClass")
	add(storagev1.SchemeGroupVersion, "csistoragecapacities", "CSIStorageCapacity")
	add(storagev1.SchemeGroupVersion, "volumeattachments", "VolumeAttachment")
	add(v1.SchemeGroupVersion, "persistentvolumes", "PersistentVolume")
	add(v1.SchemeGroupVersion, "persistentvolumeclaims", "PersistentVolumeClaim")
	add(resourcev1.SchemeGroupVersion, "deviceclasses", "DeviceClass")
	add(resourcev1.SchemeGroupVersion, "resourceslices", "ResourceSlice").Shown = true
	add(resourcev1.SchemeGroupVersion, "devicetaintrules", "DeviceTaintRule")
	add(resourcev1.SchemeGroupVersion, "resourceclaims", "ResourceClaim").Shown = true
	add(v1.SchemeGroupVersion, "services", "Service")
	add(v1.SchemeGroupVersion, "replicationcontrollers", "ReplicationController")
	add(appsv1.SchemeGroupVersion, "replicasets", "ReplicaSet")
	add(appsv1.SchemeGroupVersion, "statefulsets", "StatefulSet")
	add(batchv1.SchemeGroupVersion, "jobs", "Job").Shown = true
	add(policyv1.SchemeGroupVersion, "poddisruptionbudgets", "PodDisruptionBudget")
	add(schedulingv1beta1.SchemeGroupVersion, "podgroups", "PodGroup")
	add(schedulingv1alpha1.SchemeGroupVersion, "podgroups", "PodGroup").Shown = true
	// The trees of Kubernetes' own groups are read from objects without a type.
	composites := foreign(schedulingv1alpha3.SchemeGroupVersion, "compositepodgroups", "CompositePodGroup")
	composites.Shown, composites.untyped = true, true
	groups := foreign(schedulingv1alpha3.SchemeGroupVersion, "podgroups", "PodGroup")
	groups.Dumped, groups.Shown, groups.untyped = false, true, true
	foreign(berthv1alpha1.SchemeGroupVersion, "placementpolicies", "PlacementPolicy").Cluster = true
	foreign(berthv1alpha1.SchemeGroupVersion, "ippools", "IPPool").Cluster = true
	foreign(berthv1alpha1.SchemeGroupVersion, "ipreservations", "IPReservation").Cluster = true
	for _, owner := range read.OwnerKinds() {
		for _, version := range owner.Versions {
			gv := schema.GroupVersion{Group: owner.Group, Version: version}
			if !clientscheme.Scheme.Recognizes(gv.WithKind(owner.Kind)) {
				foreign(gv, owner.Resource, owner.Kind)
			}
		}
	}
	for _, group := range read.GroupKinds() {
		if !clientscheme.Scheme.IsGroupRegistered(group.Group) {
			foreign(schema.GroupVersion{Group: group.Group, Version: group.Versions[0]}, group.Resource, group.Object)
		}
	}
	// The fields that are read are the same in both versions of Kueue.
	for _, version := range []string{"v1beta2", "v1beta1"} {
		gv := schema.GroupVersion{Group: "kueue.x-k8s.io", Version: version}
		for _, of := range [][2]string{{"workloads", "Workload"}, {"localqueues", "LocalQueue"},
			{"clusterqueues", "ClusterQueue"}} {
			k := foreign(gv, of[0], of[1])
			k.Dumped, k.Shown = false, true
		}
	}
	pods := add(v1.SchemeGroupVersion, "pods", "Pod")
	pods.Required, pods.Shown = true, true
	events := add(v1.SchemeGroupVersion, "events", "Event")
	events.Dumped, events.Shown = false, true
	return kinds
}()

// ClusterScoped reports whether a kind is one of Berth's own without a namespace.
func ClusterScoped(gvk schema.GroupVersionKind) bool {
	return slices.ContainsFunc(kinds, func(k Kind) bool { return k.Cluster && k.gvk() == gvk })
}

// Holds reports whether a dump may have objects of that kind.
func Holds(gvk schema.GroupVersionKind) bool {
	return slices.ContainsFunc(kinds, func(k Kind) bool { return k.Dumped && k.gvk() == gvk })
}

func (k *Kind) gvk() schema.GroupVersionKind { return k.GroupVersion().WithKind(k.Kind) }
