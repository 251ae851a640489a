// Package inputs is what a scheduler reads of a cluster: which kinds, and of each object which fields. Dumps hold that
// and nothing else, simulations serve it, and the overview keeps no more in memory. It copies fields one by one, so
// that what was not considered, such as environment variables and names of Secrets, is left out.
package inputs

import (
	"encoding/json"
	"fmt"
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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	networkv1alpha1 "berth.dev/berth/pkg/apis/network/v1alpha1"
	placementv1alpha1 "berth.dev/berth/pkg/apis/placement/v1alpha1"
	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang/read"
)

// Kind is a kind that a dump holds.
type Kind struct {
	schema.GroupVersionResource
	Kind string
	// Required kinds make up a cluster; without the others a dump is merely less exact.
	Required bool
	// Foreign kinds are those that most clusters do not serve, or serve in one version only: they are not missed.
	Foreign bool
	// Cluster is set for custom resources without a namespace.
	Cluster bool
}

// Kinds lists what a scheduler reads, and nothing else. The order is that of a dump: what others refer to
// comes first.
func Kinds() []Kind { return slices.Clone(kinds) }

var kinds = func() []Kind {
	kind := func(gv schema.GroupVersion, resource, kind string) Kind {
		return Kind{GroupVersionResource: gv.WithResource(resource), Kind: kind}
	}
	nodes, pods := kind(v1.SchemeGroupVersion, "nodes", "Node"), kind(v1.SchemeGroupVersion, "pods", "Pod")
	nodes.Required, pods.Required = true, true
	kinds := []Kind{
		kind(v1.SchemeGroupVersion, "namespaces", "Namespace"),
		kind(schedulingv1.SchemeGroupVersion, "priorityclasses", "PriorityClass"),
		nodes,
		kind(storagev1.SchemeGroupVersion, "csinodes", "CSINode"),
		kind(storagev1.SchemeGroupVersion, "csidrivers", "CSIDriver"),
		kind(storagev1.SchemeGroupVersion, "storageclasses", "StorageClass"),
		kind(storagev1.SchemeGroupVersion, "csistoragecapacities", "CSIStorageCapacity"),
		kind(storagev1.SchemeGroupVersion, "volumeattachments", "VolumeAttachment"),
		kind(v1.SchemeGroupVersion, "persistentvolumes", "PersistentVolume"),
		kind(v1.SchemeGroupVersion, "persistentvolumeclaims", "PersistentVolumeClaim"),
		kind(resourcev1.SchemeGroupVersion, "deviceclasses", "DeviceClass"),
		kind(resourcev1.SchemeGroupVersion, "resourceslices", "ResourceSlice"),
		kind(resourcev1.SchemeGroupVersion, "devicetaintrules", "DeviceTaintRule"),
		kind(resourcev1.SchemeGroupVersion, "resourceclaims", "ResourceClaim"),
		kind(v1.SchemeGroupVersion, "services", "Service"),
		kind(v1.SchemeGroupVersion, "replicationcontrollers", "ReplicationController"),
		kind(appsv1.SchemeGroupVersion, "replicasets", "ReplicaSet"),
		kind(appsv1.SchemeGroupVersion, "statefulsets", "StatefulSet"),
		kind(batchv1.SchemeGroupVersion, "jobs", "Job"),
		kind(policyv1.SchemeGroupVersion, "poddisruptionbudgets", "PodDisruptionBudget"),
		kind(schedulingv1beta1.SchemeGroupVersion, "podgroups", "PodGroup"),
		kind(schedulingv1alpha1.SchemeGroupVersion, "podgroups", "PodGroup"),
	}
	composite := kind(schedulingv1alpha3.SchemeGroupVersion, "compositepodgroups", "CompositePodGroup")
	composite.Foreign = true
	kinds = append(kinds, composite)
	for _, own := range []Kind{
		kind(placementv1alpha1.SchemeGroupVersion, "placementpolicies", "PlacementPolicy"),
		kind(networkv1alpha1.SchemeGroupVersion, "ippools", "IPPool"),
		kind(networkv1alpha1.SchemeGroupVersion, "ipreservations", "IPReservation"),
	} {
		own.Cluster, own.Foreign = true, true
		kinds = append(kinds, own)
	}
	for _, owner := range read.OwnerKinds() {
		for _, version := range owner.Versions {
			gv := schema.GroupVersion{Group: owner.Group, Version: version}
			if !clientscheme.Scheme.Recognizes(gv.WithKind(owner.Kind)) {
				foreign := kind(gv, owner.Resource, owner.Kind)
				foreign.Foreign = true
				kinds = append(kinds, foreign)
			}
		}
	}
	for _, group := range read.GroupKinds() {
		gv := schema.GroupVersion{Group: group.Group, Version: group.Versions[0]}
		if !clientscheme.Scheme.IsGroupRegistered(group.Group) {
			foreign := kind(gv, group.Resource, group.Object)
			foreign.Foreign = true
			kinds = append(kinds, foreign)
		}
	}
	return append(kinds, pods)
}()

// ClusterScoped says whether objects of a kind of Berth's own have no namespace.
func ClusterScoped(gvk schema.GroupVersionKind) bool {
	return slices.ContainsFunc(kinds, func(k Kind) bool {
		return k.Cluster && k.Kind == gvk.Kind && k.GroupVersion() == gvk.GroupVersion()
	})
}

// Holds says whether a dump may hold objects of that kind.
func Holds(gvk schema.GroupVersionKind) bool {
	return slices.ContainsFunc(kinds, func(k Kind) bool {
		return k.Kind == gvk.Kind && k.GroupVersion() == gvk.GroupVersion()
	})
}

// Keep returns what a dump keeps of an object as the API server lists it: the fields that a scheduler reads, copied one
// by one, so that a field that was not considered is left out. Environment variables, commands, names of Secrets and
// annotations that do not decide about placement are among what is left out. An object of another kind is an error.
func Keep(obj *unstructured.Unstructured) (runtime.Object, error) {
	gvk := obj.GroupVersionKind()
	if !Holds(gvk) {
		return nil, fmt.Errorf("%s is not a kind that a dump holds", gvk)
	}
	kept, err := keep(obj)
	if err != nil {
		return nil, fmt.Errorf("reading %s %s/%s: %w", gvk.Kind, obj.GetNamespace(), obj.GetName(), err)
	}
	kept.GetObjectKind().SetGroupVersionKind(gvk)
	return kept, nil
}

func keep(obj *unstructured.Unstructured) (runtime.Object, error) {
	switch obj.GroupVersionKind().GroupVersion().WithKind(obj.GetKind()) {
	case v1.SchemeGroupVersion.WithKind("Pod"):
		return keepAs(obj, KeepPod)
	case v1.SchemeGroupVersion.WithKind("Node"):
		return keepAs(obj, KeepNode)
	case v1.SchemeGroupVersion.WithKind("Namespace"):
		return keepAs(obj, func(n *v1.Namespace) *v1.Namespace {
			return &v1.Namespace{ObjectMeta: keepMeta(n.ObjectMeta), Status: v1.NamespaceStatus{Phase: n.Status.Phase}}
		})
	case v1.SchemeGroupVersion.WithKind("Service"):
		return keepAs(obj, func(s *v1.Service) *v1.Service {
			return &v1.Service{ObjectMeta: keepMeta(s.ObjectMeta), Spec: v1.ServiceSpec{Selector: s.Spec.Selector}}
		})
	case v1.SchemeGroupVersion.WithKind("ReplicationController"):
		return keepAs(obj, func(r *v1.ReplicationController) *v1.ReplicationController {
			return &v1.ReplicationController{ObjectMeta: keepMeta(r.ObjectMeta),
				Spec: v1.ReplicationControllerSpec{Selector: r.Spec.Selector, Replicas: r.Spec.Replicas}}
		})
	case appsv1.SchemeGroupVersion.WithKind("ReplicaSet"):
		return keepAs(obj, func(r *appsv1.ReplicaSet) *appsv1.ReplicaSet {
			return &appsv1.ReplicaSet{ObjectMeta: keepMeta(r.ObjectMeta),
				Spec: appsv1.ReplicaSetSpec{Selector: r.Spec.Selector, Replicas: r.Spec.Replicas}}
		})
	case appsv1.SchemeGroupVersion.WithKind("StatefulSet"):
		return keepAs(obj, func(s *appsv1.StatefulSet) *appsv1.StatefulSet {
			return &appsv1.StatefulSet{ObjectMeta: keepMeta(s.ObjectMeta), Spec: appsv1.StatefulSetSpec{
				Selector: s.Spec.Selector, Replicas: s.Spec.Replicas, PodManagementPolicy: s.Spec.PodManagementPolicy}}
		})
	case batchv1.SchemeGroupVersion.WithKind("Job"):
		return keepOwner(obj, &batchv1.Job{})
	case policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"):
		return keepAs(obj, func(p *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
			p.Status.Conditions = nil
			return &policyv1.PodDisruptionBudget{ObjectMeta: keepMeta(p.ObjectMeta), Spec: p.Spec, Status: p.Status}
		})
	case schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"):
		return keepAs(obj, func(p *schedulingv1.PriorityClass) *schedulingv1.PriorityClass {
			return &schedulingv1.PriorityClass{ObjectMeta: keepMeta(p.ObjectMeta), Value: p.Value,
				GlobalDefault: p.GlobalDefault, PreemptionPolicy: p.PreemptionPolicy}
		})
	case schedulingv1beta1.SchemeGroupVersion.WithKind("PodGroup"):
		return keepAs(obj, func(g *schedulingv1beta1.PodGroup) *schedulingv1beta1.PodGroup {
			return &schedulingv1beta1.PodGroup{ObjectMeta: keepMeta(g.ObjectMeta), Spec: g.Spec}
		})
	case schedulingv1alpha3.SchemeGroupVersion.WithKind("CompositePodGroup"):
		return keepAs(obj, func(g *schedulingv1alpha3.CompositePodGroup) *schedulingv1alpha3.CompositePodGroup {
			return &schedulingv1alpha3.CompositePodGroup{ObjectMeta: keepMeta(g.ObjectMeta), Spec: g.Spec}
		})
	case placementv1alpha1.SchemeGroupVersion.WithKind("PlacementPolicy"):
		return keepCustom(obj, func(p *placementv1alpha1.PlacementPolicy) *placementv1alpha1.PlacementPolicy {
			return &placementv1alpha1.PlacementPolicy{TypeMeta: p.TypeMeta, ObjectMeta: keepMeta(p.ObjectMeta), Spec: p.Spec}
		})
	case networkv1alpha1.SchemeGroupVersion.WithKind("IPPool"):
		return keepCustom(obj, func(p *networkv1alpha1.IPPool) *networkv1alpha1.IPPool {
			return &networkv1alpha1.IPPool{TypeMeta: p.TypeMeta, ObjectMeta: keepMeta(p.ObjectMeta), Spec: p.Spec}
		})
	case networkv1alpha1.SchemeGroupVersion.WithKind("IPReservation"):
		return keepCustom(obj, func(r *networkv1alpha1.IPReservation) *networkv1alpha1.IPReservation {
			return &networkv1alpha1.IPReservation{TypeMeta: r.TypeMeta, ObjectMeta: keepMeta(r.ObjectMeta), Spec: r.Spec}
		})
	case schedulingv1alpha1.SchemeGroupVersion.WithKind("PodGroup"):
		return keepCustom(obj, func(g *schedulingv1alpha1.PodGroup) *schedulingv1alpha1.PodGroup {
			kept := &schedulingv1alpha1.PodGroup{TypeMeta: g.TypeMeta, ObjectMeta: keepMeta(g.ObjectMeta), Spec: g.Spec}
			if reserved := meta.FindStatusCondition(g.Status.Conditions, schedulingv1alpha1.PodGroupReserved); reserved != nil {
				kept.Status = schedulingv1alpha1.PodGroupStatus{ReservedNodes: g.Status.ReservedNodes,
					Conditions: []metav1.Condition{*reserved}}
			}
			return kept
		})
	}
	switch group := obj.GroupVersionKind().Group; {
	case group == resourcev1.GroupName:
		return keepDevices(obj)
	case !clientscheme.Scheme.IsGroupRegistered(group):
		return keepOwner(obj, nil)
	}
	return keepStorage(obj)
}

// keepOwner keeps of an object whose pods may form a gang what says so, as typed if that is not nil.
func keepOwner(obj *unstructured.Unstructured, typed runtime.Object) (runtime.Object, error) {
	kind, known := read.GroupKindOf(obj.GroupVersionKind())
	if !known {
		kind, known = read.OwnerKindOf(obj.GetKind())
	}
	if !known {
		return nil, fmt.Errorf("%s is not a kind whose pods form gangs", obj.GetKind())
	}
	kept := kind.Keep(obj)
	if typed == nil {
		return kept, nil
	}
	return typed, runtime.DefaultUnstructuredConverter.FromUnstructured(kept.Object, typed)
}

// keepAs reads obj as a T and returns what choose keeps of it.
func keepAs[T any, P interface {
	*T
	runtime.Object
}](obj *unstructured.Unstructured, choose func(P) P) (runtime.Object, error) {
	typed := P(new(T))
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, typed); err != nil {
		return nil, err
	}
	return choose(typed), nil
}

// keepCustom does the same for a custom resource, which goes on without a type.
func keepCustom[T any, P interface {
	*T
	runtime.Object
}](obj *unstructured.Unstructured, choose func(P) P) (runtime.Object, error) {
	kept, err := keepAs(obj, choose)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(kept)
	if err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{}
	return out, out.UnmarshalJSON(data)
}

func keepMeta(m metav1.ObjectMeta) metav1.ObjectMeta {
	kept := metav1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, UID: m.UID, Generation: m.Generation, Labels: m.Labels,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp, OwnerReferences: m.OwnerReferences,
	}
	for _, key := range placementAnnotations {
		if value, ok := m.Annotations[key]; ok {
			if kept.Annotations == nil {
				kept.Annotations = map[string]string{}
			}
			kept.Annotations[key] = value
		}
	}
	return kept
}

// KeepNode returns what Keep keeps of a node.
func KeepNode(n *v1.Node) *v1.Node {
	kept := &v1.Node{
		ObjectMeta: keepMeta(n.ObjectMeta),
		Spec: v1.NodeSpec{Unschedulable: n.Spec.Unschedulable, Taints: n.Spec.Taints,
			PodPreemptionPolicy: n.Spec.PodPreemptionPolicy},
		Status: v1.NodeStatus{
			Capacity: n.Status.Capacity, Allocatable: n.Status.Allocatable, Images: n.Status.Images,
			RuntimeHandlers: n.Status.RuntimeHandlers, Features: n.Status.Features, DeclaredFeatures: n.Status.DeclaredFeatures,
			NodeInfo: v1.NodeSystemInfo{KubeletVersion: n.Status.NodeInfo.KubeletVersion,
				OperatingSystem: n.Status.NodeInfo.OperatingSystem, Architecture: n.Status.NodeInfo.Architecture},
		},
	}
	for _, c := range n.Status.Conditions {
		kept.Status.Conditions = append(kept.Status.Conditions,
			v1.NodeCondition{Type: c.Type, Status: c.Status, Reason: c.Reason,
				LastHeartbeatTime: c.LastHeartbeatTime})
	}
	return kept
}
