package podview

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// longestOwner bounds the text of an owner reference, whose names have at most 253 characters and kinds at most 63.
const longestOwner = 1024

// ControllerOf returns the reference of a pod to its controller, nil if it has none or the reference is longer than any
// real one: the creator of a pod may write any reference, and what is kept of owners must stay small.
func ControllerOf(pod *v1.Pod) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || len(owner.APIVersion)+len(owner.Kind)+len(owner.Name)+len(owner.UID) > longestOwner {
		return nil
	}
	return owner
}

// WorkloadOf returns the controller of a pod that users know: the Deployment of a ReplicaSet, else the controller
// itself, and for a pod without one the kind Pod and its own name.
func WorkloadOf(pod *v1.Pod) (kind, name string) {
	owner := ControllerOf(pod)
	if owner == nil {
		return "Pod", pod.Name
	}
	// A ReplicaSet of a Deployment has its name and the hash of the template, which is a label of the pods.
	if hash := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; owner.Kind == "ReplicaSet" && hash != "" {
		if name, of := strings.CutSuffix(owner.Name, "-"+hash); of {
			return "Deployment", name
		}
	}
	return owner.Kind, owner.Name
}

// BelongsToNode reports whether a pod is a DaemonSet's or a static one. It keeps no node alive, and can run on no
// other.
func BelongsToNode(pod *v1.Pod) bool {
	if _, static := pod.Annotations[v1.MirrorPodAnnotationKey]; static {
		return true
	}
	return ofDaemonSet(pod)
}

// ofDaemonSet reports whether a DaemonSet of apps created the pod for one node. The reference could be forged, but the
// garbage collector deletes pods of DaemonSets that do not exist, and the DaemonSet controller those that it does not
// want on their node.
func ofDaemonSet(pod *v1.Pod) bool {
	return appsController(pod, "DaemonSet") != "" && madeForNode(pod)
}

// appsController returns the name of the pod's controller, empty if that is not of this kind of apps.
func appsController(pod *v1.Pod, kind string) string {
	owner := ControllerOf(pod)
	if owner == nil || owner.Kind != kind || !strings.HasPrefix(owner.APIVersion, appsv1.GroupName+"/") {
		return ""
	}
	return owner.Name
}

// madeForNode reports whether the pod may run only on one node, in the form that the DaemonSet controller writes.
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

// LabelOrAnnotation returns the value of the label or, if there is none, of the annotation.
func LabelOrAnnotation(pod *v1.Pod, key string) string {
	if value := pod.Labels[key]; value != "" {
		return value
	}
	return pod.Annotations[key]
}
