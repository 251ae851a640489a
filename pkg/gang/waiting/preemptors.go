package waiting

import (
	apitypes "k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"berth.dev/berth/pkg/podview"
)

// Awake reports whether the pod waits and events wake it, after Next has named those that come first. It is called
// under the lock of kube-scheduler's queue.
func (b *Backlog) Awake(uid apitypes.UID) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.known[uid] == waitsAwake
}

// watchPreemptors has events wake those that wait while there are pods to evict for them, and no longer.
func (b *Backlog) watchPreemptors() {
	for priority, p := range b.preemptors {
		makesWay := b.capacity.Cluster.MakesWay(priority)
		if makesWay == p.makesWay {
			continue
		}
		p.makesWay = makesWay
		for _, w := range b.pods {
			if w.triedAt.IsZero() && w.preempts() && w.priority() == priority {
				b.mark(w.pod.UID, p.waits())
			}
		}
	}
}

func (w *waiting) priority() int32 { return corev1helpers.PodPriority(w.pod) }

func (w *waiting) preempts() bool { return !podview.NeverPreempts(w.pod) }

// preemptors is how many pods of one priority are owned for which others could be evicted if some were less important,
// and whether some are.
type preemptors struct {
	pods     int
	makesWay bool
}

// waits is the state of such a pod that waits.
func (p *preemptors) waits() state {
	if p.makesWay {
		return waitsAwake
	}
	return waits
}

// countPreemptor notes that the pod is owned, and returns the state in which it waits.
func (b *Backlog) countPreemptor(w *waiting) state {
	if !w.preempts() {
		return waits
	}
	p := b.preemptors[w.priority()]
	if p == nil {
		p = &preemptors{makesWay: b.capacity.Cluster.MakesWay(w.priority())}
		b.preemptors[w.priority()] = p
	}
	p.pods++
	return p.waits()
}
