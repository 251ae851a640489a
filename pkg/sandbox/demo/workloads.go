package demo

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"berth.dev/berth/manifests"
	"berth.dev/berth/pkg/sandbox"
)

// workload is one file of manifests/examples with its expected outcome.
type workload struct {
	name string
	// example is the folder of the file.
	example string
	// pods is the number of pods.
	pods int
	// pending workloads are expected to stay pending.
	pending bool
}

// workloads in the order of their creation.
var workloads = []workload{
	{name: "gang-too-large", example: "09-training-gang", pods: 24, pending: true},
	{name: "ml-training", example: "00-first-pods", pods: 1},
	{name: "batch-processing", example: "00-first-pods", pods: 4},
	{name: "inference-shared", example: "11-shared-gpus", pods: 6},
	{name: "gang-training", example: "09-training-gang", pods: 8},
}

// delayKey is the annotation of a pod that says how long it runs before it succeeds (see package controlplane).
const delayKey = "pod-complete.stage.kwok.x-k8s.io/delay"

// runsOn is how long the Jobs run. By default they would end after a minute, possibly before they are checked, and a
// cluster that stays up would look idle.
const runsOn = "8760h"

// objects reads a workload as kubectl apply would create it, so that the example can be applied over it later.
func (w workload) objects() ([]*unstructured.Unstructured, error) {
	objects, err := sandbox.ReadObjects(manifests.Files, "examples/"+w.example+"/"+w.name+".yaml")
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		written, err := object.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("encoding %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		annotations := object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[corev1.LastAppliedConfigAnnotation] = string(written)
		object.SetAnnotations(annotations)
		if object.GetKind() == "Job" {
			err := unstructured.SetNestedField(object.Object, runsOn, "spec", "template", "metadata", "annotations", delayKey)
			if err != nil {
				return nil, fmt.Errorf("letting Job %s run: %w", object.GetName(), err)
			}
		}
	}
	return objects, nil
}

// has reports whether a pod belongs to the workload, by its name.
func (w workload) has(pod *corev1.Pod) bool { return strings.HasPrefix(pod.Name, w.name) }

// settled counts the pods of the workload in their expected state: with a node, or pending with a reason.
func (w workload) settled(pods []corev1.Pod) int {
	n := 0
	for i := range pods {
		pod := &pods[i]
		if w.has(pod) && (w.pending && pendingReason(pod) != "" || !w.pending && pod.Spec.NodeName != "") {
			n++
		}
	}
	return n
}

// pendingReason is the scheduler's message about a pending pod.
func pendingReason(pod *corev1.Pod) string {
	if _, c := podutil.GetPodCondition(&pod.Status, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
		return c.Message
	}
	return ""
}
