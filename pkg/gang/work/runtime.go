package work

import (
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

// kueueSecondsLabel is the label of Kueue with the seconds after which a job is ended.
const kueueSecondsLabel = "kueue.x-k8s.io/max-exec-time-seconds"

// late is how much longer than its run time a pod may exist, because it takes time to start and to terminate.
const late = 30 * time.Second

// DeclaredRunTime reads the run time that a pod, or a PodGroup for its pods, declares, 0 for none.
func DeclaredRunTime(of metav1.Object) (time.Duration, *wellknown.BadValue) {
	value, ok := of.GetAnnotations()[wellknown.RunTimeKey]
	if !ok {
		return 0, nil
	}
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 || d > longest {
		return 0, podview.BadAnnotation(of, wellknown.RunTimeKey,
			"a duration above 0 and of at most ten years, such as 90m or 3h")
	}
	return d, nil
}

// RunTime returns the least of the run time that the pod, or its PodGroup, which may be nil, declares, and the limits
// of the pod and its controller; 0 if there are none. Bad values are ignored.
func RunTime(pod *v1.Pod, group *schedulingv1alpha1.PodGroup, limit time.Duration) time.Duration {
	run := expected(pod, group)
	for _, most := range []time.Duration{limit, kueueLimit(pod), podLimit(pod)} {
		if most > 0 && (run == 0 || most < run) {
			run = most
		}
	}
	return run
}

func expected(pod *v1.Pod, group *schedulingv1alpha1.PodGroup) time.Duration {
	run, _ := DeclaredRunTime(pod)
	if run == 0 && group != nil {
		run, _ = DeclaredRunTime(group)
	}
	return run
}

// EndOf returns when a bound pod with this run time, 0 if it is not known, ends. known is false for a pod that should
// have ended before.
func EndOf(pod *v1.Pod, run time.Duration, now time.Time) (at time.Time, known bool) {
	began, ran := started(pod)
	switch {
	case pod.DeletionTimestamp != nil:
		at = pod.DeletionTimestamp.Time
	case run == 0:
		return time.Time{}, false
	case !ran:
		at = now.Add(run)
	default:
		at = began.Add(run)
	}
	return at, !now.After(at.Add(late))
}

// podLimit returns after what time the kubelet ends the pod, 0 if it does not.
func podLimit(pod *v1.Pod) time.Duration {
	if pod.Spec.ActiveDeadlineSeconds == nil {
		return 0
	}
	return time.Duration(min(*pod.Spec.ActiveDeadlineSeconds, int64(longest/time.Second))) * time.Second
}

// kueueLimit returns after what time Kueue ends the pod, 0 if it does not.
func kueueLimit(pod *v1.Pod) time.Duration {
	text := pod.Labels[kueueSecondsLabel]
	if text == "" {
		return 0 // for most pods, without making a parse error
	}
	seconds, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// started returns when the pod started on its node, false if that is not known yet.
func started(pod *v1.Pod) (time.Time, bool) {
	if pod.Status.StartTime != nil {
		return pod.Status.StartTime.Time, true
	}
	return podview.ScheduledAt(pod)
}
