package main

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/kubeview"
)

const (
	namespace = "histories"
	profile   = "berth-scheduler"

	wholeMode   = "whole"
	sharedMode  = "shared"
	claimedMode = "dra"

	driver       = "gpu.nvidia.com"
	className    = "gpu"
	taintKey     = "histories/taint"
	guardedLabel = "histories/guarded"
	editedLabel  = "histories/edited"
)

var startTaints = []v1.Taint{{Key: taintKey, Effect: v1.TaintEffectNoSchedule}}

// furniture is what every history's cluster has besides nodes.
func furniture() []runtime.Object {
	return []runtime.Object{
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: className}, Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{
			{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)}},
		}}},
		&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: "guarded", Namespace: namespace},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{guardedLabel: "true"}}},
		},
	}
}

// objects are the node and, where its GPUs are claimed, the slice that lists them.
func (n *Node) objects() []runtime.Object {
	amounts := v1.ResourceList{
		v1.ResourceCPU:    *resource.NewQuantity(n.CPUs, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(n.MemGiB<<30, resource.BinarySI),
		v1.ResourcePods:   *resource.NewQuantity(110, resource.DecimalSI),
	}
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: map[string]string{v1.LabelHostname: n.Name, v1.LabelTopologyZone: n.Zone}},
		Status: v1.NodeStatus{
			Capacity: amounts, Allocatable: amounts.DeepCopy(),
			Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}},
		},
	}
	if n.Tainted {
		node.Spec.Taints = startTaints
	}
	if n.Price != "" {
		node.Annotations = map[string]string{kubeview.PricePerHourKey: n.Price}
	}
	switch {
	case n.GPUs == 0:
	case n.Mode == claimedMode:
		return []runtime.Object{node, n.slice()}
	default:
		kubeview.SetGPUs(node, n.Model, n.GPUs, n.Mode == sharedMode)
	}
	return []runtime.Object{node}
}

func (n *Node) slice() *resourcev1.ResourceSlice {
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: &n.Name, Pool: resourcev1.ResourcePool{Name: n.Name, Generation: 1, ResourceSliceCount: 1},
		},
	}
	for i := range n.GPUs {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{
			Name:       fmt.Sprintf("gpu-%d", i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"productName": {StringValue: &n.Model}},
			Capacity:   map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}},
		})
	}
	return slice
}

// objects are the pod and what has to be there before it.
func (p *Pod) objects() []runtime.Object {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: namespace, Labels: map[string]string{}},
		Spec: v1.PodSpec{
			SchedulerName: profile, Priority: &p.Priority, RestartPolicy: v1.RestartPolicyNever,
			Containers: []v1.Container{{Name: "main", Image: "histories.invalid/main", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
				v1.ResourceCPU:    *resource.NewMilliQuantity(p.MilliCPU, resource.DecimalSI),
				v1.ResourceMemory: *resource.NewQuantity(p.MemGiB<<30, resource.BinarySI),
			}}}},
		},
		Status: v1.PodStatus{Phase: v1.PodPending},
	}
	switch {
	case p.GPUs > 0:
		kubeview.RequestGPUs(pod, p.GPUs)
	case p.MilliGPU > 0:
		kubeview.RequestShare(pod, p.MilliGPU)
	}
	if len(p.Models) > 0 {
		kubeview.AcceptModels(pod, p.Models)
	}
	if p.Gang != "" {
		kubeview.JoinGang(pod, p.Gang)
	}
	if p.Role != "" {
		pod.Labels[kubeview.RoleKey] = p.Role
	}
	if p.Zone != "" {
		pod.Spec.NodeSelector = map[string]string{v1.LabelTopologyZone: p.Zone}
	}
	if p.Tolerates {
		pod.Spec.Tolerations = []v1.Toleration{{Key: taintKey, Operator: v1.TolerationOpExists}}
	}
	if p.EndsSeconds > 0 {
		pod.Spec.TerminationGracePeriodSeconds = &p.EndsSeconds
	}
	if p.Gated {
		pod.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "histories/gate"}}
	}
	if p.Backfill {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, kubeview.BackfillKey, "allow")
	}
	if p.Guarded {
		pod.Labels[guardedLabel] = "true"
	}
	var before []runtime.Object
	if p.ClaimedGPUs > 0 {
		claim := fmt.Sprintf("%s-%d", p.Name, p.Times)
		before = append(before, &resourcev1.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Name: claim, Namespace: namespace},
			Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpus", Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: className, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: p.ClaimedGPUs,
			}}}}},
		})
		pod.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpus", ResourceClaimName: &claim}}
		pod.Spec.Containers[0].Resources.Claims = []v1.ResourceClaim{{Name: "gpus"}}
	}
	if p.VolumeZone != "" {
		before = append(before, p.volume()...)
		pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: p.Name},
		}}}
	}
	return append(before, pod)
}

// claimOf names the claim of a pod, which need not have one.
func claimOf(pod *v1.Pod) types.NamespacedName {
	name := types.NamespacedName{Namespace: pod.Namespace}
	for _, claim := range pod.Spec.ResourceClaims {
		name.Name = *claim.ResourceClaimName
	}
	return name
}

// volume is one that is in a zone, and the bound claim to it.
func (p *Pod) volume() []runtime.Object {
	modes, size := []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
	none := ""
	return []runtime.Object{
		&v1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: p.Name},
			Spec: v1.PersistentVolumeSpec{
				Capacity: size, AccessModes: modes, ClaimRef: &v1.ObjectReference{Namespace: namespace, Name: p.Name},
				PersistentVolumeSource: v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: "/data"}},
				NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
					MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelTopologyZone, Operator: v1.NodeSelectorOpIn, Values: []string{p.VolumeZone}}},
				}}}},
			},
			Status: v1.PersistentVolumeStatus{Phase: v1.VolumeBound},
		},
		&v1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: namespace, Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}},
			Spec: v1.PersistentVolumeClaimSpec{
				AccessModes: modes, VolumeName: p.Name, StorageClassName: &none, Resources: v1.VolumeResourceRequirements{Requests: size},
			},
			Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound, AccessModes: modes, Capacity: size},
		},
	}
}

func (g *Gang) object() *unstructured.Unstructured {
	group := kubeview.NewPodGroup(namespace, g.Name, g.MinMember)
	says := map[string]string{}
	if g.MinByRole != "" {
		says[kubeview.MinMembersByRoleKey] = g.MinByRole
	}
	if g.OneZone {
		says[kubeview.TopologyRequiredKey] = v1.LabelTopologyZone
	}
	group.SetAnnotations(says)
	if g.TimeoutSeconds > 0 {
		// The object was made with a spec, so that this cannot fail.
		_ = unstructured.SetNestedField(group.Object, g.TimeoutSeconds, "spec", "scheduleTimeoutSeconds")
	}
	return group
}
