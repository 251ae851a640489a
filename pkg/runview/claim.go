package runview

import (
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/runtimes"
	"berth.dev/berth/pkg/wellknown"
)

// kueueLimit is the label of Kueue with the seconds after which a job is ended.
const kueueLimit = "kueue.x-k8s.io/max-exec-time-seconds"

// longest is the longest run time that is believed.
const longest = 10 * 365 * 24 * time.Hour

// services are controllers whose pods do not end on their own.
var services = []string{"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController"}

// PodRunTime reads how long the pod declares to run, 0 if it declares nothing.
func PodRunTime(pod *v1.Pod) (time.Duration, *wellknown.BadValue) {
	return declared("pod", &pod.ObjectMeta)
}

// GroupRunTime reads how long the pods of a PodGroup are declared to run, 0 if it declares nothing.
func GroupRunTime(group metav1.Object) (time.Duration, *wellknown.BadValue) {
	return declared("PodGroup "+group.GetName(), group)
}

func declared(object string, of metav1.Object) (time.Duration, *wellknown.BadValue) {
	value, ok := of.GetAnnotations()[wellknown.RunTimeKey]
	if !ok {
		return 0, nil
	}
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 || d > longest {
		return 0, &wellknown.BadValue{Object: object, Kind: "annotation", Key: wellknown.RunTimeKey, Value: value,
			Allowed: "a duration above 0 and of at most ten years, such as 90m or 3h"}
	}
	return d, nil
}

// ClaimOf reads what the pod, or its PodGroup, which may be nil, says of its run time. A wrong value says nothing.
func ClaimOf(pod *v1.Pod, group metav1.Object) runtimes.Claim {
	c := runtimes.Claim{Limit: limitOf(pod), Service: isService(pod)}
	if c.Expected, _ = PodRunTime(pod); c.Expected == 0 && group != nil {
		c.Expected, _ = GroupRunTime(group)
	}
	return c
}

// limitOf is after what time the pod is ended, 0 if it is not.
func limitOf(pod *v1.Pod) time.Duration {
	var limit time.Duration
	for _, seconds := range []int64{kueueSeconds(pod), deadlineSeconds(pod)} {
		if d := time.Duration(seconds) * time.Second; d > 0 && (limit == 0 || d < limit) {
			limit = d
		}
	}
	return limit
}

func deadlineSeconds(pod *v1.Pod) int64 {
	if pod.Spec.ActiveDeadlineSeconds == nil {
		return 0
	}
	return min(*pod.Spec.ActiveDeadlineSeconds, int64(longest/time.Second))
}

func kueueSeconds(pod *v1.Pod) int64 {
	text := pod.Labels[kueueLimit]
	if text == "" {
		return 0 // most pods, for which parsing would word an error
	}
	seconds, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0
	}
	return seconds
}

func isService(pod *v1.Pod) bool {
	owner := podview.ControllerOf(pod)
	if owner != nil && slices.Contains(services, owner.Kind) {
		return true
	}
	return pod.Spec.RestartPolicy == v1.RestartPolicyAlways || pod.Spec.RestartPolicy == ""
}

// ClassOf says which pods are like this one, which asks for that number of GPUs.
func ClassOf(pod *v1.Pod, gpus int) runtimes.Class {
	_, name := podview.WorkloadOf(pod)
	return runtimes.Class{
		Namespace: pod.Namespace, Controller: runtimes.Stem(name), Image: podview.MainImage(pod), GPUs: gpus,
	}
}

// Started is when the pod began to run on its node, false if it has none.
func Started(pod *v1.Pod) (time.Time, bool) {
	if pod.Spec.NodeName == "" {
		return time.Time{}, false
	}
	if pod.Status.StartTime != nil {
		return pod.Status.StartTime.Time, true
	}
	return podview.ScheduledAt(pod)
}

// EndedAlone reports whether a pod that has just gone had ended on its own: it was neither deleted nor evicted.
func EndedAlone(pod *v1.Pod) bool {
	if pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil {
		return false
	}
	return !slices.ContainsFunc(pod.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.DisruptionTarget && c.Status == v1.ConditionTrue
	})
}
