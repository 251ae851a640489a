package evictor

import (
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/eviction"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/reservation"
)

// Preempting holds the pods for which the scheduler's own preemption evicts others, until these have gone and they are
// tried again.
//
// While it evicts, the queue does not wake the pod for what happens, and counts on the end of the last victim. Where
// two pods have chosen the same victims, that may have ended before. Nothing else would wake the pod for minutes.
//
// Once it has asked for the evictions, all that happens wakes the pod. What the scheduler has heard by then may not
// show that the victims go, so that it would evict others on another node.
type Preempting struct {
	mu   sync.Mutex
	pods []*preemptor
}

// preemptor is a pod for which others are evicted on a node.
type preemptor struct {
	pod     gang.Ref
	node    string
	evicted []reservation.AwaitedPod
	// until is when those that are evicted have had their time, so that others may be chosen.
	until time.Time
}

const (
	// mostPreemptors bounds the pods that are held. Those beyond are tried again as all pods are, after some minutes.
	mostPreemptors = 1000
	// preemptorsAtOnce is how many are looked at each time.
	preemptorsAtOnce = 16
)

// Add holds the pod, which was not held.
func (p *Preempting) Add(pod gang.Ref) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.pods) < mostPreemptors {
		p.pods = append(p.pods, &preemptor{pod: pod})
	}
}

// Evicted notes that the API server was asked to evict a victim for the pod, if that is held.
func (p *Preempting) Evicted(by gang.UID, victim *v1.Pod, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, held := range p.pods {
		if held.pod.UID != by {
			continue
		}
		held.node = victim.Spec.NodeName
		held.evicted = append(held.evicted, reservation.AwaitedPods([]*v1.Pod{victim})...)
		gone := now.Add(eviction.Grace)
		if s := victim.Spec.TerminationGracePeriodSeconds; s != nil {
			gone = gone.Add(time.Duration(*s) * time.Second)
		}
		if gone.After(held.until) {
			held.until = gone
		}
	}
}

// Awaited returns the node on which pods are evicted for the pod and those that are, none once they have had their
// time.
func (p *Preempting) Awaited(by gang.UID, now time.Time) (node string, evicted []reservation.AwaitedPod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, held := range p.pods {
		if held.pod.UID == by && now.Before(held.until) {
			return held.node, slices.Clip(held.evicted)
		}
	}
	return "", nil
}

// Drop forgets the pod.
func (p *Preempting) Drop(uid gang.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pods = slices.DeleteFunc(p.pods, func(held *preemptor) bool { return held.pod.UID == uid })
}

// Next returns those that have not been looked at for the longest time.
func (p *Preempting) Next() []gang.Ref {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := min(preemptorsAtOnce, len(p.pods))
	first := make([]gang.Ref, n)
	for i, held := range p.pods[:n] {
		first[i] = held.pod
	}
	p.pods = append(slices.Clone(p.pods[n:]), p.pods[:n]...)
	return first
}
