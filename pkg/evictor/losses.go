package evictor

import (
	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/workview"
)

// addLosses says of all victims what their eviction loses.
func (b *problemBuilder) addLosses() {
	loss := b.evictor.Sources.Loss
	if loss.Limits.Unsaved == 0 {
		return
	}
	moment := loss.At(b.now)
	for i, pod := range b.victims {
		v := &b.problem.Victims[i]
		v.Lost, v.Protected = moment.Lost(pod), moment.IsProtected(pod)
	}
}

// losing says what the eviction of the pod loses, as the end of a sentence; nothing where that does not count.
func losing(pod *v1.Pod, moment *workview.Moment) string {
	if moment.Limits.Unsaved == 0 {
		return ""
	}
	return "; it loses " + moment.Describe(pod)
}
