package gangview

import (
	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/podview"
)

// How Kueue's groups of plain pods are declared. Their name is a label or, since Kueue 0.18, an annotation.
const (
	kueueGroup = "kueue.x-k8s.io/pod-group-name"
	kueueCount = "kueue.x-k8s.io/pod-group-total-count"
	// kueueFast and kueueServing are on pods of groups that Kueue admits before all of their pods exist.
	kueueFast    = "kueue.x-k8s.io/pod-group-fast-admission"
	kueueServing = "kueue.x-k8s.io/pod-group-serving"
)

// kueueGang reads Kueue's group of the pod, which needs no object: each pod says how many there are.
func kueueGang(pod *v1.Pod) (Membership, error) {
	name, count := labelOrAnnotation(pod, kueueGroup), pod.Annotations[kueueCount]
	if name == "" || count == "" || pod.Annotations[kueueFast] == "true" || pod.Annotations[kueueServing] == "true" {
		return Membership{}, nil
	}
	minimum, ok := parseMinimum(count)
	if !ok {
		return Membership{}, podview.BadAnnotation(pod, kueueCount, allowedMinimum)
	}
	ended := kueueGroup
	if pod.Labels[kueueGroup] == "" {
		ended = endedLabelOf(pod)
	}
	return Membership{ID: gang.ID{Namespace: pod.Namespace, Name: "kueue." + name}, Minimum: minimum, EndedLabel: ended,
		FollowEnded: true}, nil
}
