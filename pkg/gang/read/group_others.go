package read

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/podview"
)

// Keys of Kueue's groups of plain pods. The name is a label or, since Kueue 0.18, an annotation.
const (
	kueueGroup = "kueue.x-k8s.io/pod-group-name"
	kueueCount = "kueue.x-k8s.io/pod-group-total-count"
	// kueueFast and kueueServing are on pods of groups that Kueue admits before all of their pods exist.
	kueueFast    = "kueue.x-k8s.io/pod-group-fast-admission"
	kueueServing = "kueue.x-k8s.io/pod-group-serving"
)

// kueueGang reads Kueue's group of the pod. It has no object: each pod carries the number of pods.
func kueueGang(pod *v1.Pod) (Membership, error) {
	name, count := podview.LabelOrAnnotation(pod, kueueGroup), pod.Annotations[kueueCount]
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

// Foreign is an annotation by which a pod names a group of another scheduler that Berth does not read.
type Foreign struct {
	Key string
	// Project is the other scheduler.
	Project string
}

// foreigners are part of these projects' APIs. Their controllers set them on the pods that they create.
var foreigners = []Foreign{
	{"gang.scheduling.koordinator.sh/name", "Koordinator"},
	{"yunikorn.apache.org/task-group-name", "YuniKorn"},
}

// ForeignOf returns the first such annotation of the pod.
func ForeignOf(pod *v1.Pod) (Foreign, bool) {
	for _, f := range foreigners {
		if pod.Annotations[f.Key] != "" {
			return f, true
		}
	}
	return Foreign{}, false
}

// String is the message that the annotation has no effect, and what to use instead.
func (f Foreign) String() string {
	return fmt.Sprintf(
		"annotation %s names a group of %s, which is not read: the pod is placed on its own. To place the group as a gang, "+
			"label the pods %s=NAME and create the PodGroup NAME of scheduling.x-k8s.io", f.Key, f.Project, Labels()[0])
}
