package history

import (
	"cmp"
	"fmt"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/gpu/gpuview/express"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/invariants"
)

// What is in all histories: names, the profile of pods that name none, and labels by which pods are known.
const (
	Namespace      = "histories"
	DefaultProfile = "berth-scheduler"

	// Modes of nodes.
	WholeMode   = "whole"
	SharedMode  = "shared"
	ClaimedMode = "dra"

	driver       = "gpu.nvidia.com"
	className    = "gpu"
	taintKey     = "histories/taint"
	GuardedLabel = "histories/guarded"
	EditedLabel  = "histories/edited"
	NearLabel    = "histories/near"
	ApartLabel   = "histories/apart"
	SpreadLabel  = "histories/spread"
	hostPort     = 9400
)

// StartTaints are those of a node that is tainted.
var StartTaints = []v1.Taint{{Key: taintKey, Effect: v1.TaintEffectNoSchedule}}

// Furniture is what every history's cluster has besides nodes.
func Furniture() []runtime.Object {
	return []runtime.Object{
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}},
		&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: className},
			Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{
				{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)}},
			}}},
		&storagev1.StorageClass{
			ObjectMeta:  metav1.ObjectMeta{Name: LocalClass},
			Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer),
		},
		&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: "guarded", Namespace: Namespace},
			Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{
				MatchLabels: map[string]string{GuardedLabel: "true"}}},
		},
	}
}

// Objects are the node and, where its GPUs are claimed, the slice that lists them.
func (n *Node) Objects() []runtime.Object {
	amounts := v1.ResourceList{
		v1.ResourceCPU:    *resource.NewQuantity(n.CPUs, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(n.MemGiB<<30, resource.BinarySI),
		v1.ResourcePods:   *resource.NewQuantity(110, resource.DecimalSI),
	}
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name,
			Labels: map[string]string{v1.LabelHostname: n.Name, v1.LabelTopologyZone: n.Zone}},
		Status: v1.NodeStatus{
			Capacity: amounts, Allocatable: amounts.DeepCopy(),
			Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}},
		},
	}
	if n.Tainted {
		node.Spec.Taints = StartTaints
	}
	if n.Price != "" {
		node.Annotations = map[string]string{wellknown.PricePerHourKey: n.Price}
	}
	objects := []runtime.Object{node}
	keys := gpuview.DefaultKeys()
	switch {
	case n.GPUs == 0:
	case n.Mode == ClaimedMode:
		objects = append(objects, n.slice())
	default:
		express.Node(&keys, node, n.Model, n.GPUs, n.Mode == SharedMode)
	}
	return append(objects, n.volumes()...)
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

// Objects are the pod and what has to be there before it.
func (p *Pod) Objects() []runtime.Object {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: Namespace, Labels: map[string]string{}},
		Spec: v1.PodSpec{
			SchedulerName: cmp.Or(p.Profile, DefaultProfile), Priority: &p.Priority, RestartPolicy: v1.RestartPolicyNever,
			Containers: []v1.Container{{Name: "main", Image: "histories.invalid/main",
				Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
					v1.ResourceCPU:    *resource.NewMilliQuantity(p.MilliCPU, resource.DecimalSI),
					v1.ResourceMemory: *resource.NewQuantity(p.MemGiB<<30, resource.BinarySI),
				}}}},
		},
		Status: v1.PodStatus{Phase: v1.PodPending},
	}
	keys := gpuview.DefaultKeys()
	switch {
	case p.GPUs > 0:
		express.Whole(&keys, pod, p.GPUs)
	case p.MilliGPU > 0:
		express.Share(pod, p.MilliGPU)
	}
	if len(p.Models) > 0 {
		express.Models(&keys, pod, p.Models)
	}
	switch {
	case p.Job:
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, wellknown.GangKey, "true")
	case p.MinAvailable > 0:
		pod.Labels[invariants.NameLabel], pod.Labels[invariants.MinAvailableLabel] = p.Gang, strconv.Itoa(p.MinAvailable)
	case p.Gang != "":
		read.Join(pod, p.Gang)
	}
	if p.Role != "" {
		pod.Labels[wellknown.RoleKey] = p.Role
	}
	if p.Half != "" {
		pod.Labels[wellknown.GroupKey] = p.Half
	}
	if p.Zone != "" {
		pod.Spec.NodeSelector = map[string]string{v1.LabelTopologyZone: p.Zone}
	}
	if p.Tolerates {
		pod.Spec.Tolerations = []v1.Toleration{{Key: taintKey, Operator: v1.TolerationOpExists}}
	}
	if p.Port {
		pod.Spec.Containers[0].Ports = []v1.ContainerPort{{ContainerPort: hostPort, HostPort: hostPort,
			Protocol: v1.ProtocolTCP}}
	}
	p.surround(pod)
	if p.Spread != nil {
		p.Spread.apply(pod)
	}
	if p.EndsSeconds > 0 {
		pod.Spec.TerminationGracePeriodSeconds = &p.EndsSeconds
	}
	if p.LateSeconds > 0 {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, LateKey, strconv.FormatInt(p.LateSeconds, 10))
	}
	if p.Gated {
		pod.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "histories/gate"}}
	}
	if p.Backfill {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, wellknown.BackfillKey, "allow")
	}
	if p.Guarded {
		pod.Labels[GuardedLabel] = "true"
	}
	var before []runtime.Object
	if p.ClaimedGPUs > 0 {
		claim := fmt.Sprintf("%s-%d", p.Name, p.Times)
		before = append(before, &resourcev1.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Name: claim, Namespace: Namespace},
			Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
				Requests: []resourcev1.DeviceRequest{{Name: "gpus", Exactly: &resourcev1.ExactDeviceRequest{
					DeviceClassName: className, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: p.ClaimedGPUs,
				}}}}},
		})
		pod.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpus", ResourceClaimName: &claim}}
		pod.Spec.Containers[0].Resources.Claims = []v1.ResourceClaim{{Name: "gpus"}}
	}
	if p.VolumeZone != "" || p.LocalVolume {
		before = append(before, p.volume()...)
		pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: p.Name},
		}}}
	}
	return append(before, pod)
}

// surround says which pods have to be near, and which must not be.
func (p *Pod) surround(pod *v1.Pod) {
	term := func(label, value, of string) []v1.PodAffinityTerm {
		return []v1.PodAffinityTerm{{TopologyKey: of,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{label: value}}}}
	}
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &v1.Affinity{}
	}
	if p.Apart {
		pod.Labels[ApartLabel] = "true"
		pod.Spec.Affinity.PodAntiAffinity = &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term(
			ApartLabel, "true", v1.LabelHostname)}
	}
	if p.Near && p.Gang != "" {
		pod.Labels[NearLabel] = p.Gang
		pod.Spec.Affinity.PodAffinity = &v1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: term(NearLabel, p.Gang, v1.LabelTopologyZone),
		}
	}
}

func (g *Gang) podGroup() *unstructured.Unstructured {
	group := read.NewPodGroup(Namespace, g.Name, g.MinMember)
	says := map[string]string{}
	if g.MinByRole != "" {
		says[wellknown.MinMembersByRoleKey] = g.MinByRole
	}
	if g.Halves {
		group = read.NewPodGroup(Namespace, g.Name, 0)
		says[wellknown.GroupsKey] = fmt.Sprintf(`[{"name":"half","copies":2,"pods":%d,"required":%q}]`, g.MinMember/2,
			v1.LabelTopologyZone)
	}
	if g.OneZone {
		says[wellknown.TopologyRequiredKey] = v1.LabelTopologyZone
	}
	group.SetAnnotations(says)
	if g.TimeoutSeconds > 0 {
		// The object was made with a spec, so that this cannot fail.
		_ = unstructured.SetNestedField(group.Object, g.TimeoutSeconds, "spec", "scheduleTimeoutSeconds")
	}
	return group
}

// job is the Job whose pods are the gang.
func (g *Gang) job() *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: g.Name, Namespace: Namespace},
		Spec:       batchv1.JobSpec{Parallelism: ptr.To(int32(g.MinMember))}, //nolint:gosec // small
	}
}

// Object is the PodGroup or the Job.
func (g *Gang) Object() runtime.Object {
	if g.Job {
		return g.job()
	}
	return g.podGroup()
}
