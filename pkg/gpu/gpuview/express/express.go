// Package express says with labels, annotations and resources what gpuview reads from them, for clusters and pods that
// exist in a simulation or a test only. Replays, random histories and chaos call it. Where several keys mean the same
// it uses the most common one.
package express

import (
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/wellknown"
)

// simulatedAgent names the agent of shared nodes in a simulation, where a pod uses exactly its devices.
const simulatedAgent = "simulation"

// Node makes count GPUs of a model part of a node of a simulation. Shared puts the node into the mode in which the
// scheduler hands out shares of GPUs.
func Node(k *gpuview.Keys, node *v1.Node, model string, count int, shared bool) {
	for _, label := range []struct {
		keys  []string
		value string
	}{{k.ProductLabels, model}, {k.CountLabels, strconv.Itoa(count)}} {
		if len(label.keys) > 0 {
			metav1.SetMetaDataLabel(&node.ObjectMeta, label.keys[0], label.value)
		}
	}
	if shared {
		metav1.SetMetaDataLabel(&node.ObjectMeta, wellknown.GPUModeKey, "shared")
		metav1.SetMetaDataLabel(&node.ObjectMeta, wellknown.GPUAgentKey, simulatedAgent)
	}
	quantity := *resource.NewQuantity(int64(count), resource.DecimalSI)
	for _, list := range []v1.ResourceList{node.Status.Capacity, node.Status.Allocatable} {
		list[v1.ResourceName(k.Resources[0])] = quantity
	}
}

// OfferedFirst are the keys with the GPU resources that nodes among the objects offer in front, so that generated pods
// ask for these.
func OfferedFirst(k gpuview.Keys, objects []runtime.Object) gpuview.Keys {
	offered := map[string]bool{}
	for _, obj := range objects {
		if node, ok := obj.(*v1.Node); ok {
			for name := range node.Status.Allocatable {
				offered[string(name)] = true
			}
		}
	}
	k.Resources = slices.Clone(k.Resources)
	slices.SortStableFunc(k.Resources, func(a, b string) int {
		switch {
		case offered[a] == offered[b]:
			return 0
		case offered[a]:
			return -1
		default:
			return 1
		}
	})
	return k
}

// Whole makes a pod of one container ask for whole GPUs.
func Whole(k *gpuview.Keys, pod *v1.Pod, count int) {
	name := v1.ResourceName(k.Resources[0])
	pod.Spec.Containers[0].Resources.Requests[name] = *resource.NewQuantity(int64(count), resource.DecimalSI)
}

// Share makes a pod ask for thousandths of one GPU.
func Share(pod *v1.Pod, milli int) {
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, gpuview.OpenbMilliKey, strconv.Itoa(milli))
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, gpuview.OpenbCountKey, "1")
}

// TakeWhole makes a pod that asks for shares of GPUs in annotations alone ask for the same number of whole GPUs by
// resource, as its owner has to where the scheduler knows no shares. It reports whether there was such a request.
func TakeWhole(k *gpuview.Keys, pod *v1.Pod) bool {
	asked, err := k.PodGPURequest(pod)
	if err != nil || !asked.WantsGPU() || asked.Dialect == gpuview.DialectNone || k.AsksByResource(pod) ||
		len(pod.Spec.Containers) == 0 {
		return false
	}
	for _, key := range gpuview.AskingKeys() {
		delete(pod.Annotations, key)
	}
	if len(asked.Models) > 0 {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, wellknown.GPUModelsKey, strings.Join(asked.Models, "|"))
	}
	if pod.Spec.Containers[0].Resources.Requests == nil {
		pod.Spec.Containers[0].Resources.Requests = v1.ResourceList{}
	}
	Whole(k, pod, max(asked.Count, 1))
	return true
}

// Models names the GPU models that a pod accepts, in Berth's own annotation and in the language of the stock
// scheduler, so that every configuration has the same choice.
func Models(k *gpuview.Keys, pod *v1.Pod, models []string) {
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, wellknown.GPUModelsKey, strings.Join(models, "|"))
	if len(k.ProductLabels) == 0 {
		return
	}
	required := &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
		MatchExpressions: []v1.NodeSelectorRequirement{
			{Key: k.ProductLabels[0], Operator: v1.NodeSelectorOpIn, Values: models},
		},
	}}}
	pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: required,
	}}
}
