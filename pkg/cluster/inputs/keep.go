package inputs

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	berthv1alpha1 "berth.dev/berth/pkg/apis/berth/v1alpha1"
	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang/read"
)

// Keep returns a copy of an object with the fields that a scheduler reads. Fields are copied one by one, so that
// unknown fields are left out, as are environment variables, commands, names of Secrets and annotations that do not
// affect placement. The copy is typed for kinds of Kubernetes, else unstructured. An object that a dump does not hold
// is an error.
func Keep(obj runtime.Object) (runtime.Object, error) {
	gvk, err := KindOf(obj)
	if err != nil {
		return nil, err
	}
	if !Holds(gvk) {
		return nil, fmt.Errorf("%s is not a kind that a dump holds", gvk)
	}
	if untyped, ok := obj.(*unstructured.Unstructured); ok && types.Recognizes(gvk) {
		if obj, err = types.New(gvk); err != nil {
			return nil, err
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(untyped.Object, obj); err != nil {
			return nil, err
		}
	}
	kept, err := keep(obj)
	if err != nil {
		return nil, err
	}
	kept.GetObjectKind().SetGroupVersionKind(gvk)
	if _, custom := kept.(*unstructured.Unstructured); custom || clientscheme.Scheme.Recognizes(gvk) {
		return kept, nil
	}
	data, err := json.Marshal(kept)
	if err != nil {
		return nil, err
	}
	custom := &unstructured.Unstructured{}
	return custom, custom.UnmarshalJSON(data)
}

// KindOf is the kind of an object. A typed object need not name it.
func KindOf(obj runtime.Object) (schema.GroupVersionKind, error) {
	if gvk := obj.GetObjectKind().GroupVersionKind(); !gvk.Empty() {
		return gvk, nil
	}
	kinds, _, err := types.ObjectKinds(obj)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return kinds[0], nil
}

func keep(obj runtime.Object) (runtime.Object, error) {
	switch o := obj.(type) {
	case *v1.Pod:
		return KeepPod(o), nil
	case *v1.Node:
		return KeepNode(o), nil
	case *v1.Namespace:
		return &v1.Namespace{ObjectMeta: keepMeta(o.ObjectMeta), Status: v1.NamespaceStatus{Phase: o.Status.Phase}}, nil
	case *v1.Service:
		return &v1.Service{ObjectMeta: keepMeta(o.ObjectMeta), Spec: v1.ServiceSpec{Selector: o.Spec.Selector}}, nil
	case *v1.ReplicationController:
		return &v1.ReplicationController{ObjectMeta: keepMeta(o.ObjectMeta),
			Spec: v1.ReplicationControllerSpec{Selector: o.Spec.Selector, Replicas: o.Spec.Replicas}}, nil
	case *appsv1.ReplicaSet:
		return &appsv1.ReplicaSet{ObjectMeta: keepMeta(o.ObjectMeta),
			Spec: appsv1.ReplicaSetSpec{Selector: o.Spec.Selector, Replicas: o.Spec.Replicas}}, nil
	case *appsv1.StatefulSet:
		return &appsv1.StatefulSet{ObjectMeta: keepMeta(o.ObjectMeta), Spec: appsv1.StatefulSetSpec{
			Selector: o.Spec.Selector, Replicas: o.Spec.Replicas, PodManagementPolicy: o.Spec.PodManagementPolicy}}, nil
	case *batchv1.Job:
		return keepJob(o)
	case *policyv1.PodDisruptionBudget:
		kept := &policyv1.PodDisruptionBudget{ObjectMeta: keepMeta(o.ObjectMeta), Spec: o.Spec, Status: o.Status}
		kept.Status.Conditions = nil
		return kept, nil
	case *schedulingv1.PriorityClass:
		return &schedulingv1.PriorityClass{ObjectMeta: keepMeta(o.ObjectMeta), Value: o.Value,
			GlobalDefault: o.GlobalDefault, PreemptionPolicy: o.PreemptionPolicy}, nil
	case *schedulingv1beta1.PodGroup:
		return &schedulingv1beta1.PodGroup{ObjectMeta: keepMeta(o.ObjectMeta), Spec: o.Spec}, nil
	case *schedulingv1alpha3.CompositePodGroup:
		return &schedulingv1alpha3.CompositePodGroup{ObjectMeta: keepMeta(o.ObjectMeta), Spec: o.Spec}, nil
	case *berthv1alpha1.PlacementPolicy:
		return &berthv1alpha1.PlacementPolicy{ObjectMeta: keepMeta(o.ObjectMeta), Spec: o.Spec}, nil
	case *berthv1alpha1.IPPool:
		return &berthv1alpha1.IPPool{ObjectMeta: keepMeta(o.ObjectMeta), Spec: o.Spec}, nil
	case *berthv1alpha1.IPReservation:
		return &berthv1alpha1.IPReservation{ObjectMeta: keepMeta(o.ObjectMeta), Spec: o.Spec}, nil
	case *schedulingv1alpha1.PodGroup:
		kept := &schedulingv1alpha1.PodGroup{ObjectMeta: keepMeta(o.ObjectMeta), Spec: o.Spec}
		if reserved := meta.FindStatusCondition(o.Status.Conditions, schedulingv1alpha1.PodGroupReserved); reserved != nil {
			kept.Status = schedulingv1alpha1.PodGroupStatus{ReservedNodes: o.Status.ReservedNodes,
				Conditions: []metav1.Condition{*reserved}}
		}
		return kept, nil
	case *resourcev1.DeviceClass:
		// No scheduler reads the parameters of drivers, here and in claims.
		kept := &resourcev1.DeviceClass{ObjectMeta: keepMeta(o.ObjectMeta), Spec: o.Spec}
		kept.Spec.Config = nil
		return kept, nil
	case *resourcev1.ResourceSlice:
		return &resourcev1.ResourceSlice{ObjectMeta: keepMeta(o.ObjectMeta), Spec: o.Spec}, nil
	case *resourcev1.DeviceTaintRule:
		return &resourcev1.DeviceTaintRule{ObjectMeta: keepMeta(o.ObjectMeta), Spec: o.Spec}, nil
	case *resourcev1.ResourceClaim:
		return keepClaim(o), nil
	case *unstructured.Unstructured:
		return keepOwner(o)
	}
	return keepStorage(obj)
}

func keepClaim(c *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	kept := &resourcev1.ResourceClaim{ObjectMeta: keepMeta(c.ObjectMeta), Spec: c.Spec,
		Status: resourcev1.ResourceClaimStatus{ReservedFor: c.Status.ReservedFor}}
	kept.Spec.Devices.Config = nil
	if c.Status.Allocation != nil {
		allocation := *c.Status.Allocation
		allocation.Devices.Config = nil
		kept.Status.Allocation = &allocation
	}
	return kept
}

// keepOwner keeps the fields of an object that say whether its pods form a gang.
func keepOwner(obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	kind, known := read.GroupKindOf(obj.GroupVersionKind())
	if !known {
		kind, known = read.OwnerKindOf(obj.GetKind())
	}
	if !known {
		return nil, fmt.Errorf("%s is not a kind whose pods form gangs", obj.GetKind())
	}
	return kind.Keep(obj), nil
}

// keepJob is keepOwner for a Job.
func keepJob(job *batchv1.Job) (*batchv1.Job, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{Object: content}
	obj.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
	owner, err := keepOwner(obj)
	if err != nil {
		return nil, err
	}
	kept := &batchv1.Job{}
	return kept, runtime.DefaultUnstructuredConverter.FromUnstructured(owner.Object, kept)
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
