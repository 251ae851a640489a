package replay

import (
	"fmt"
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/cost/priceview"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/gpu/gpuview/express"
	"berth.dev/berth/pkg/lab/trace"
	"berth.dev/berth/pkg/wellknown"
)

// namespace is where the pods of a job live that names none.
const namespace = "replay"

var (
	podResource      = v1.SchemeGroupVersion.WithResource("pods")
	nodeResource     = v1.SchemeGroupVersion.WithResource("nodes")
	podGroupResource = schedulingv1alpha1.SchemeGroupVersion.WithResource("podgroups")
)

// nodeObject makes the Kubernetes node for a node of a trace. With shared set, its GPUs are in the mode for shares.
func nodeObject(n trace.Node, shared bool, keys *gpuview.Keys, rules priceview.CapacityRules) *v1.Node {
	capacity := v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(n.CPUMilli, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(n.MemoryMiB<<20, resource.BinarySI),
		v1.ResourcePods:   *resource.NewQuantity(1000, resource.DecimalSI),
	}
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: n.Name, UID: types.UID("node/" + n.Name),
			Labels: map[string]string{v1.LabelHostname: n.Name, v1.LabelOSStable: "linux", v1.LabelArchStable: "amd64"},
		},
		Status: v1.NodeStatus{
			Capacity: capacity, Allocatable: capacity,
			Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}},
		},
	}
	if n.GPUs > 0 {
		express.Node(keys, node, n.Model, n.GPUs, shared)
	}
	if n.Rack != "" {
		node.Labels[wellknown.RackLabel] = n.Rack
	}
	if n.Zone != "" {
		node.Labels[v1.LabelTopologyZone] = n.Zone
	}
	if n.Spot {
		rules.SetSpot(node)
	}
	if n.MicroDollarsPerHour > 0 {
		priceview.SetPrice(node, price.MicroDollars(n.MicroDollarsPerHour))
	}
	return node
}

// setPrice prices a node.
func setPrice(node *v1.Node, keys *gpuview.Keys, rates *price.ModelRates) error {
	gpus, _ := keys.ReadGPUNode(node)
	amount, err := rates.Price(node.Name, gpus.Model(), priceview.ReadNode(keys, node).Allocatable)
	if err != nil {
		return err
	}
	priceview.SetPrice(node, amount)
	return nil
}

// namespaceOf is where the pods of a job live.
func namespaceOf(j *trace.Job) string {
	if j.Namespace == "" {
		return namespace
	}
	return j.Namespace
}

// podObject makes pod number index of a job; attempt counts its restarts. Without shares, a share of a GPU takes a
// whole GPU, as in a cluster whose scheduler does not know shares.
func podObject(j *trace.Job, index, attempt int, schedulerName string, shares bool,
	keys *gpuview.Keys) *v1.Pod {
	name := j.PodName(index)
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: namespaceOf(j), UID: types.UID(fmt.Sprintf("pod/%s/%d", name, attempt)),
			Labels: maps.Clone(j.Labels),
		},
		Spec: v1.PodSpec{
			SchedulerName: schedulerName,
			Containers: []v1.Container{{Name: "main", Image: "replay.invalid/main",
				Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
					v1.ResourceCPU:    *resource.NewMilliQuantity(j.CPUMilli, resource.DecimalSI),
					v1.ResourceMemory: *resource.NewQuantity(j.MemoryMiB<<20, resource.BinarySI),
				}}}},
			RestartPolicy: v1.RestartPolicyNever,
			Priority:      &j.Priority,
		},
		Status: v1.PodStatus{Phase: v1.PodPending},
	}
	switch {
	case j.GPUs > 0 && shares && j.GPUMilli < gpu.WholeMilli:
		express.Share(pod, j.GPUMilli)
	case j.GPUs > 0:
		express.Whole(keys, pod, j.GPUs)
	}
	if len(j.Models) > 0 {
		express.Models(keys, pod, j.Models)
	}
	if j.Spot != "" {
		priceview.SetSpotPolicy(pod, priceview.SpotPolicy(j.Spot))
	}
	if j.Gang {
		read.Join(pod, j.Name)
	}
	if j.RunTime > 0 {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, wellknown.RunTimeKey, j.RunTime.String())
	}
	return pod
}

func podGroupObject(j *trace.Job) *unstructured.Unstructured {
	return read.NewPodGroup(namespaceOf(j), j.Name, j.Pods)
}
