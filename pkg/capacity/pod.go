package capacity

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"berth.dev/berth/pkg/gang"
)

// podEntry is a pod that is bound to a node and has not ended.
type podEntry struct {
	BoundPod
	on *nodeEntry
	// others is what the pod requests of resources that no node has offered so far, usually nil.
	others map[v1.ResourceName]int64
	// at is the position among the pods of the node.
	at int
}

// boundPods holds the pods that are bound to a node and have not ended.
type boundPods struct {
	byUID map[apitypes.UID]*podEntry
	// priorities counts those that could be evicted, leaving those that terminate.
	priorities, leaving priorityCount
}

// count counts a pod in or out of the members on its node, and of the pods that could be evicted or that terminate.
func (b *boundPods) count(p *podEntry, by int) {
	if p.Of != (gang.ID{}) {
		p.on.members += by
	}
	if p.Terminating {
		b.leaving.add(p.Priority, by)
		return
	}
	b.priorities.add(p.Priority, by)
}

// describe returns what a copy of the index says about a pod.
func describe(pod *v1.Pod, of gang.ID, uses []use) BoundPod {
	p := BoundPod{
		Object:      pod,
		UID:         gang.UID(pod.UID),
		Of:          of,
		Priority:    corev1helpers.PodPriority(pod),
		Terminating: pod.DeletionTimestamp != nil,
		Started:     pod.CreationTimestamp.Time,
		Uses:        uses,
	}
	if pod.Status.StartTime != nil {
		p.Started = pod.Status.StartTime.Time
	}
	return p
}

// SetPod records a pod that came or changed, as a member of a gang if of is not zero. Pods without a node and pods that
// have ended use nothing.
func (x *Feed) SetPod(pod *v1.Pod, of gang.ID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.pods.byUID[pod.UID]
	if pod.Spec.NodeName == "" || pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
		x.removePod(old)
		return
	}
	uses, others := x.resources.uses(pod)
	if old != nil && old.on.name == pod.Spec.NodeName && slices.Equal(old.Uses, uses) && maps.Equal(old.others, others) {
		x.looks.eased = x.looks.eased || !maps.Equal(old.Object.Labels, pod.Labels)
		x.memo.besides = nil
		x.pods.count(old, -1)
		old.BoundPod = describe(pod, of, old.Uses)
		x.pods.count(old, 1)
		return
	}
	n := x.at(pod.Spec.NodeName)
	if old != nil && old.on != n {
		x.removePod(old)
		old = nil
	}
	p := &podEntry{BoundPod: describe(pod, of, uses), on: n, others: others}
	x.change(n, false, func() {
		// A pod that shrinks in place shows in the shapes, unless what it gives back is not in this index.
		x.unbind(old)
		p.at = len(n.pods)
		n.pods = append(n.pods, p)
		for _, u := range uses {
			n.used[u.Resource] += u.Amount
		}
		x.pods.byUID[pod.UID] = p
		x.pods.count(p, 1)
	})
}

// uncover counts what a pod uses of a resource that has just got a position.
func (x *store) uncover(p *podEntry, name v1.ResourceName, position int) {
	amount, requested := p.others[name]
	if !requested {
		return
	}
	// No shape is bounded by the resource so far, so the node is not marked.
	p.on.used[position] += amount
	// The new position is the last.
	p.Uses = append(p.Uses, use{Resource: position, Amount: amount})
	if delete(p.others, name); len(p.others) == 0 {
		p.others = nil
	}
}

// DropPod forgets a pod.
func (x *Feed) DropPod(uid apitypes.UID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.removePod(x.pods.byUID[uid])
}

func (x *store) removePod(p *podEntry) {
	if p != nil {
		x.change(p.on, false, func() { x.unbind(p) })
	}
}

// unbind takes a pod off its node, which is about to be counted.
func (x *store) unbind(p *podEntry) {
	if p == nil {
		return
	}
	n := p.on
	p.release(n.used)
	last := n.pods[len(n.pods)-1]
	n.pods[p.at], last.at = last, p.at
	n.pods[len(n.pods)-1] = nil
	n.pods = n.pods[:len(n.pods)-1]
	delete(x.pods.byUID, p.Object.UID)
	x.pods.count(p, -1)
	x.looks.eased, n.freed = true, x.looks.asked+1
}

// priorityCount counts pods by priority. A cluster has few different priorities, so looking at all of them is cheap.
type priorityCount map[int32]int

func (c priorityCount) add(priority int32, by int) {
	if c[priority] += by; c[priority] == 0 {
		delete(c, priority)
	}
}

func (c priorityCount) anyBelow(priority int32) bool {
	for p := range c {
		if p < priority {
			return true
		}
	}
	return false
}
