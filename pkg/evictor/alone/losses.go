package alone

import (
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"

	"berth.dev/berth/pkg/eviction"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/workview"
)

// Losses are what the scheduler's own preemption compares pods by.
type Losses struct {
	Loss *workview.Loss
	// IsFor reports whether a pod has notice for the sake of the gang or pod of that name.
	IsFor   func(name string, uid gang.UID) bool
	current atomic.Pointer[current]
}

// current is what evictions lose in the cycle of the pod of that name, if it is known.
type current struct {
	*workview.Moment
	name string
}

// age is for how long what evictions lose is not read again, where no cycle of ours begins.
const age = time.Second

// BeginCycle begins the cycle of the pod of that name, and the result ends it.
func (l *Losses) BeginCycle(name string, now time.Time) (end func()) {
	l.current.Store(&current{l.Loss.At(now), name})
	return func() { l.current.Store(nil) }
}

// moment returns what evictions lose now.
func (l *Losses) moment() *current {
	now, m := time.Now(), l.current.Load()
	if m == nil || now.Sub(m.Now) > age {
		m = &current{Moment: l.Loss.At(now)}
		l.current.Store(m)
	}
	return m
}

// cost is what the eviction of the pod costs.
func (l *Losses) cost(pod *v1.Pod) eviction.Cost {
	moment := l.moment()
	v := eviction.Victim{Priority: corev1helpers.PodPriority(pod)}
	if moment.name == "" || !l.IsFor(moment.name, gang.UID(pod.UID)) {
		v.Lost, v.Protected = moment.Lost(pod), moment.IsProtected(pod)
	}
	var cost eviction.Cost
	cost.Add(&v)
	return cost
}

// MoreImportant has the scheduler's own preemption spare pods that would lose more. Between groups of the core it
// decides as ever.
func (l *Losses) MoreImportant(otherwise func(a, b preemption.Victim) bool) func(a, b preemption.Victim) bool {
	return func(a, b preemption.Victim) bool {
		if l.Loss.Limits.Unsaved > 0 && a.Priority() == b.Priority() && len(a.Pods()) == 1 &&
			len(b.Pods()) == 1 && a.Type() == b.Type() {
			order := l.cost(a.Pods()[0].GetPod()).Compare(l.cost(b.Pods()[0].GetPod()))
			if order != 0 {
				return order > 0
			}
		}
		return otherwise(a, b)
	}
}
