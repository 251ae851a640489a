package coscheduling

import (
	"context"
	"sync"
	"time"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/retry"
)

// preemptors holds the pods for which the scheduler's own preemption evicts others, until they are tried again. While
// it evicts, the queue does not wake the pod for what happens, and counts on the end of the last victim. Where two pods
// have chosen the same victims, that may have ended before. Nothing else would wake the pod for minutes.
type preemptors struct {
	mu   sync.Mutex
	pods []gang.Ref
}

const (
	// mostPreemptors bounds the pods that are held. Those beyond are tried again as all pods are, after some minutes.
	mostPreemptors = 1000
	// preemptorsAtOnce is how many are looked at each time.
	preemptorsAtOnce = 16
)

// add holds the pod, which was not held.
func (p *preemptors) add(pod gang.Ref) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.pods) < mostPreemptors {
		p.pods = append(p.pods, pod)
	}
}

// drop forgets the pod, as it is tried.
func (p *preemptors) drop(uid gang.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.pods {
		if p.pods[i].UID == uid {
			p.pods = append(p.pods[:i:i], p.pods[i+1:]...)
			return
		}
	}
}

// next returns those that have not been looked at for the longest time.
func (p *preemptors) next() []gang.Ref {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := min(preemptorsAtOnce, len(p.pods))
	first := p.pods[:n:n]
	p.pods = append(p.pods[n:len(p.pods):len(p.pods)], first...)
	return first
}

// preemptors activates the pods for which others are evicted one by one and for which there is room by the account, and
// forgets those that are gone or have a node.
func (a *activator) preemptors(ctx context.Context, now time.Time) {
	if now.Before(a.lookAt) {
		return
	}
	a.lookAt = retry.NextLook(now)
	var roomy []gang.Ref
	for _, ref := range a.preempting.next() {
		pod := a.list.Pod(ref)
		if pod == nil || pod.Spec.NodeName != "" {
			a.preempting.drop(ref.UID)
			continue
		}
		key := a.list.Capacity.Acquire(pod)
		if now, _ := a.list.Capacity.Slots(key); now > 0 {
			roomy = append(roomy, ref)
		}
		a.list.Capacity.Release(key)
	}
	a.effects.activate(ctx, roomy)
}
