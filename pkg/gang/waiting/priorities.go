package waiting

import (
	"math"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/podview"
)

// Priorities are those of the gangs that wait and of the pods in the backlog, for other pods that are tried alone. They
// are safe for concurrent use.
type Priorities struct {
	// most is the highest of one whose priority counts, less than any if there is none.
	most atomic.Int64
}

// Count brings them up to date; alone are those that come first in the backlog. Who is ordered by when it is due has no
// say.
func (p *Priorities) Count(gangs map[gang.ID]*Gang, alone []gang.Key) {
	most := int64(math.MinInt64)
	count := func(key gang.Key) {
		if !key.Ages {
			most = max(most, int64(key.Priority))
		}
	}
	for _, g := range gangs {
		count(g.Key)
	}
	for _, key := range alone {
		count(key)
	}
	p.most.Store(most)
}

// Raise takes note of a pod that waits from now on, before it is counted.
func (p *Priorities) Raise(key gang.Key) {
	if key.Ages {
		return
	}
	for most := p.most.Load(); most < int64(key.Priority); most = p.most.Load() {
		if p.most.CompareAndSwap(most, int64(key.Priority)) {
			return
		}
	}
}

// Above reports whether a gang or a pod waits that is more important than the pod.
func (p *Priorities) Above(pod *v1.Pod) bool {
	return int64(corev1helpers.PodPriority(pod)) < p.most.Load()
}

// ComesBefore reports whether a gang or a pod waits that is more important than the pod, which is tried alone and has
// waited for capacity. What wakes such a pod wakes it at once; gangs and the backlog are looked at some milliseconds
// later, and would have it evicted again. A pod that fails after it was filtered loses its nomination, so one for which
// others were evicted is let through: what replaces those would come before it, without end.
func (p *Priorities) ComesBefore(pod *v1.Pod) bool {
	if !p.Above(pod) || pod.Status.NominatedNodeName != "" ||
		podview.BelongsToNode(pod) {
		return false
	}
	_, scheduled := podutil.GetPodCondition(&pod.Status, v1.PodScheduled)
	return scheduled != nil && scheduled.Status == v1.ConditionFalse
}
