package podview

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// longestOwner bounds the text of a reference to a controller: a name has at most 253 characters, a kind 63, and a
// group and version the sum of both.
const longestOwner = 1024

// ControllerOf returns the reference of a pod to its controller. It is nil for a pod without one, and for a reference
// with more text than that to any object: the API server takes a reference to anything from any client that creates a
// pod, and what is remembered or written of owners has to stay small.
func ControllerOf(pod *v1.Pod) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || len(owner.APIVersion)+len(owner.Kind)+len(owner.Name)+len(owner.UID) > longestOwner {
		return nil
	}
	return owner
}

// WorkloadOf names the controller of a pod that users know: the Deployment of a ReplicaSet, else the controller itself.
// A pod without one is its own, with the kind Pod.
func WorkloadOf(pod *v1.Pod) (kind, name string) {
	owner := ControllerOf(pod)
	if owner == nil {
		return "Pod", pod.Name
	}
	// The ReplicaSets of a Deployment carry its name and the hash of the template, which is on their pods, too.
	if hash := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; owner.Kind == "ReplicaSet" && hash != "" {
		if name, of := strings.CutSuffix(owner.Name, "-"+hash); of {
			return "Deployment", name
		}
	}
	return owner.Kind, owner.Name
}

// BelongsToNode says whether a pod is there because its node is: a DaemonSet's pod or a static one. It keeps no node
// alive, and has no choice of nodes.
func BelongsToNode(pod *v1.Pod) bool {
	if _, static := pod.Annotations[v1.MirrorPodAnnotationKey]; static {
		return true
	}
	return ofDaemonSet(pod)
}

// ofDaemonSet says whether a DaemonSet has made the pod for one node. Any client that creates a pod may write such a
// reference, so it must be one that others look after: the garbage collector deletes pods of DaemonSets that do not
// exist, and the DaemonSet controller those that it does not want on their node. Neither knows DaemonSets of another
// group.
func ofDaemonSet(pod *v1.Pod) bool {
	owner := ControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet" && strings.HasPrefix(owner.APIVersion, appsv1.GroupName+"/") &&
		madeForNode(pod)
}

// madeForNode says whether the pod may run on one node only, as the DaemonSet controller writes it.
func madeForNode(pod *v1.Pod) bool {
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	terms := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	return len(terms) > 0 && !slices.ContainsFunc(terms, func(term v1.NodeSelectorTerm) bool {
		return !slices.ContainsFunc(term.MatchFields, func(r v1.NodeSelectorRequirement) bool {
			return r.Key == metav1.ObjectNameField && r.Operator == v1.NodeSelectorOpIn && len(r.Values) == 1
		})
	})
}

// LabelOrAnnotation returns the value of the label, or of the annotation of that key where there is no label.
func LabelOrAnnotation(pod *v1.Pod, key string) string {
	if value := pod.Labels[key]; value != "" {
		return value
	}
	return pod.Annotations[key]
}
