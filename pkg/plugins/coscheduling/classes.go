package coscheduling

import (
	"time"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/work"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/sla"
	"berth.dev/berth/pkg/wellknown"
)

// queueClasses places pods in a queue with classes. Where there are none, it leaves them to priority and time.
type queueClasses struct{ order *sla.Order }

// on reports whether the queue has classes or lets pods age.
func (q queueClasses) on() bool { return q.order != nil }

// precedence returns what the pod brings to its place. One that names a class wrongly is placed as if it named none,
// until its cycle rejects it. The group of a member may say how long it runs.
func (q queueClasses) precedence(pod *v1.Pod, group *schedulingv1alpha1.PodGroup) gang.Precedence {
	if !q.on() {
		return gang.Precedence{}
	}
	class, _ := podview.SLAClass(q.order, pod)
	var own *time.Duration
	if due, ok := work.DueOf(pod, group); ok && class != nil {
		own = new(time.Duration)
		*own = due.Start.Sub(pod.CreationTimestamp.Time)
	}
	return gang.Precedence(q.order.Place(corev1helpers.PodPriority(pod), class, own))
}

// key returns the place of an entity of the queue that is no member of a gang of ours. It is a function of the entity
// and of settings that never change, so that it changes only with the object, when the queue itself puts the entity in
// its new place.
//
// With classes a pod's time is that of its creation. The time of the queue, which begins again with each attempt, would
// put off forever what is tried often.
func (q queueClasses) key(e fwk.QueuedEntityInfo) gang.Key {
	k := gang.Key{Priority: e.GetPriority(), Time: e.GetTimestamp()}
	if !q.on() {
		return k
	}
	if pod := podOf(e); pod != nil {
		k.Precedence, k.Time = q.precedence(pod, nil), pod.CreationTimestamp.Time
		return k
	}
	if native, ok := e.(fwk.PodGroupInfo); ok && native.GetPodGroup() != nil {
		k.Time = native.GetPodGroup().CreationTimestamp.Time
	}
	// A native group is one entity of many pods: it has no class, and ages by its own priority.
	k.Precedence = gang.Precedence(q.order.Place(k.Priority, nil, nil))
	return k
}

// singleKey is key for a pod in no gang, by its creation in any case.
func (q queueClasses) singleKey(pod *v1.Pod) gang.Key {
	return gang.Key{Priority: corev1helpers.PodPriority(pod), Precedence: q.precedence(pod, nil),
		Time: pod.CreationTimestamp.Time}
}

// misstated returns what the pod says wrongly about its place in the queue or in capacity that is kept, nil if nothing
// is wrong.
func (q queueClasses) misstated(pod *v1.Pod) *wellknown.BadValue {
	if _, bad := podview.SLAClass(q.order, pod); bad != nil {
		return bad
	}
	return read.Misstated(pod)
}
