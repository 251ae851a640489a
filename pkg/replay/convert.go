package replay

import (
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/kubeview"
	"berth.dev/berth/pkg/trace"
)

const (
	namespace     = "replay"
	gpuResource   = v1.ResourceName("nvidia.com/gpu")
	productLabel  = "nvidia.com/gpu.product"
	gpuCountLabel = "nvidia.com/gpu.count"
	spotLabel     = "karpenter.sh/capacity-type"
	gangLabel     = "scheduling.x-k8s.io/pod-group"
	shareMilliKey = "alibabacloud.com/gpu-milli"
	shareCountKey = "alibabacloud.com/gpu-count"
	shareIndexKey = "alibabacloud.com/gpu-index"
)

var (
	podResource      = v1.SchemeGroupVersion.WithResource("pods")
	nodeResource     = v1.SchemeGroupVersion.WithResource("nodes")
	podGroupResource = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
)

// nodeObject makes the Kubernetes node of a trace's node. Where the trace has shares of GPUs its GPU nodes are in the mode
// in which the scheduler hands out shares.
func nodeObject(n trace.Node, shared bool) *v1.Node {
	capacity := v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(n.CPUMilli, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(n.MemoryMiB<<20, resource.BinarySI),
		v1.ResourcePods:   *resource.NewQuantity(1000, resource.DecimalSI),
	}
	labels := map[string]string{v1.LabelHostname: n.Name, v1.LabelOSStable: "linux", v1.LabelArchStable: "amd64"}
	annotations := map[string]string{}
	if n.GPUs > 0 {
		capacity[gpuResource] = *resource.NewQuantity(int64(n.GPUs), resource.DecimalSI)
		labels[productLabel] = n.Model
		labels[gpuCountLabel] = strconv.Itoa(n.GPUs)
		if shared {
			labels[kubeview.GPUModeKey] = "shared"
		}
	}
	if n.Rack != "" {
		labels[kubeview.RackLabel] = n.Rack
	}
	if n.Zone != "" {
		labels[v1.LabelTopologyZone] = n.Zone
	}
	if n.Spot {
		labels[spotLabel] = "spot"
	}
	if n.MicroDollarsPerHour > 0 {
		annotations[kubeview.PricePerHourKey] = fmt.Sprintf("%d.%06d", n.MicroDollarsPerHour/1_000_000, n.MicroDollarsPerHour%1_000_000)
	}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: types.UID("node/" + n.Name), Labels: labels, Annotations: annotations},
		Status: v1.NodeStatus{
			Capacity: capacity, Allocatable: capacity,
			Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}},
		},
	}
}

// dialect says how a share of a GPU is asked for.
type dialect bool

const (
	wholeGPUs dialect = false // a share takes a whole GPU, as in a cluster whose scheduler knows no shares
	shares    dialect = true  // annotations of the openb dialect
)

// podObject makes pod number index of a job; attempt counts how often it has been made anew.
func podObject(j *trace.Job, index, attempt int, schedulerName string, d dialect) *v1.Pod {
	name := j.Name
	if j.Pods > 1 || j.Gang {
		name = fmt.Sprintf("%s-%d", j.Name, index)
	}
	requests := v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(j.CPUMilli, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(j.MemoryMiB<<20, resource.BinarySI),
	}
	annotations := map[string]string{}
	if j.GPUs > 0 {
		if d == shares && j.GPUMilli < 1000 {
			annotations[shareMilliKey] = strconv.Itoa(j.GPUMilli)
			annotations[shareCountKey] = "1"
		} else {
			requests[gpuResource] = *resource.NewQuantity(int64(j.GPUs), resource.DecimalSI)
		}
	}
	spec := v1.PodSpec{
		SchedulerName: schedulerName,
		Containers:    []v1.Container{{Name: "main", Image: "replay.invalid/main", Resources: v1.ResourceRequirements{Requests: requests}}},
		RestartPolicy: v1.RestartPolicyNever,
		Priority:      &j.Priority,
	}
	if len(j.Models) > 0 {
		annotations[kubeview.GPUModelsKey] = strings.Join(j.Models, "|")
		spec.Affinity = modelAffinity(j.Models)
	}
	if j.Spot != "" {
		annotations[kubeview.SpotKey] = j.Spot
	}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: namespace, Annotations: annotations,
			UID: types.UID(fmt.Sprintf("pod/%s/%d", name, attempt)),
		},
		Spec:   spec,
		Status: v1.PodStatus{Phase: v1.PodPending},
	}
	if j.Gang {
		pod.Labels = map[string]string{gangLabel: j.Name}
	}
	return pod
}

// modelAffinity says in the language of the stock scheduler which GPU models are acceptable, so that every configuration
// has the same choice.
func modelAffinity(models []string) *v1.Affinity {
	return &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
		NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{
			{Key: productLabel, Operator: v1.NodeSelectorOpIn, Values: models},
		}}},
	}}}
}

func podGroupObject(j *trace.Job) *unstructured.Unstructured {
	group := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"minMember": int64(j.Pods)},
	}}
	group.SetGroupVersionKind(podGroupResource.GroupVersion().WithKind("PodGroup"))
	group.SetName(j.Name)
	group.SetNamespace(namespace)
	return group
}
