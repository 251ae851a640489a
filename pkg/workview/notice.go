package workview

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/wellknown"
)

// EvictionNotice is the type of the pod condition by which a scheduler tells a pod, and remembers, that it is to be
// evicted. The condition DisruptionTarget says the same to others, but Kubernetes takes it back after two minutes.
const EvictionNotice v1.PodConditionType = "berth.dev/EvictionNotice"

// Notice is what a pod was told.
type Notice struct {
	// By names the gang or the pod for which it is to go.
	By    string
	Given time.Time
}

// NoticeOf returns the notice that the pod has, and whether it has any.
func NoticeOf(pod *v1.Pod) (Notice, bool) {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == EvictionNotice && c.Status == v1.ConditionTrue {
			return Notice{By: c.Message, Given: c.LastTransitionTime.Time}, true
		}
	}
	return Notice{}, false
}

// AsksForNotice reports whether the pod or its PodGroup, which may be nil, asks to be told before an eviction.
func AsksForNotice(pod *v1.Pod, group metav1.Object) bool {
	if _, asks := pod.Annotations[wellknown.EvictionNoticeKey]; asks || group == nil {
		return asks
	}
	_, asks := group.GetAnnotations()[wellknown.EvictionNoticeKey]
	return asks
}
