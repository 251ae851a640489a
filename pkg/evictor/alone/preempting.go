package alone

import (
	"sync"

	"berth.dev/berth/pkg/gang"
)

// Preempting holds the pods for which the scheduler's own preemption evicts others, until they are tried again. While
// it evicts, the queue does not wake the pod for what happens, and counts on the end of the last victim. Where two pods
// have chosen the same victims, that may have ended before. Nothing else would wake the pod for minutes.
type Preempting struct {
	mu   sync.Mutex
	pods []gang.Ref
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
		p.pods = append(p.pods, pod)
	}
}

// Drop forgets the pod, as it is tried.
func (p *Preempting) Drop(uid gang.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.pods {
		if p.pods[i].UID == uid {
			p.pods = append(p.pods[:i:i], p.pods[i+1:]...)
			return
		}
	}
}

// Next returns those that have not been looked at for the longest time.
func (p *Preempting) Next() []gang.Ref {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := min(preemptorsAtOnce, len(p.pods))
	first := p.pods[:n:n]
	p.pods = append(p.pods[n:len(p.pods):len(p.pods)], first...)
	return first
}
