package capacity

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/podview"
)

// maxUse bounds what one pod uses of a resource in this index, so that the sum over a node's pods does not overflow: a
// pod may be bound by hand whatever it requests.
const maxUse = 1 << 52

// use is how much of a resource a pod uses, the resource being a position in the index's vectors.
type use struct {
	Resource int
	Amount   int64
}

// podEntry is a pod that is bound to a node and has not ended.
type podEntry struct {
	BoundPod
	on *nodeEntry
	// others is what the pod requests of resources that no node has offered so far, usually nil.
	others map[v1.ResourceName]int64
	// at is the position among the pods of the node, seen since when the index knows the pod to be there.
	at   int
	seen time.Time
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
func (x *Index) SetPod(pod *v1.Pod, of gang.ID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.pods[pod.UID]
	if pod.Spec.NodeName == "" || pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
		x.removePod(old)
		return
	}
	uses, others := x.usesOf(pod)
	if old != nil && old.on.name == pod.Spec.NodeName && slices.Equal(old.Uses, uses) && maps.Equal(old.others, others) {
		x.eased = x.eased || !maps.Equal(old.Object.Labels, pod.Labels)
		x.besides = nil
		x.count(old, -1)
		old.BoundPod = describe(pod, of, old.Uses)
		x.count(old, 1)
		return
	}
	// A pod that shrinks in place shows in the shapes, unless what it gives back is not in this index.
	x.removePod(old)
	n := x.at(pod.Spec.NodeName)
	x.mark(n)
	p := &podEntry{BoundPod: describe(pod, of, uses), on: n, others: others, at: len(n.pods), seen: time.Now()}
	if old != nil && old.on == n {
		p.seen = old.seen
	}
	n.pods = append(n.pods, p)
	for _, u := range uses {
		n.used[u.Resource] += u.Amount
	}
	x.pods[pod.UID] = p
	x.count(p, 1)
}

// usesOf returns what a bound pod uses, in the order of the resources' positions, and what it requests of others.
func (x *Index) usesOf(pod *v1.Pod) (uses []use, others map[v1.ResourceName]int64) {
	amounts := podview.Amounts(resource.PodRequests(pod, resource.PodResourcesOptions{UseStatusResources: true}))
	amounts[v1.ResourcePods] = 1
	uses = make([]use, 0, len(amounts))
	for name, amount := range amounts {
		if i, known := x.index[name]; known {
			uses = append(uses, use{Resource: i, Amount: min(amount, maxUse)})
			continue
		}
		if others == nil {
			others = map[v1.ResourceName]int64{}
		}
		others[name] = min(amount, maxUse)
	}
	slices.SortFunc(uses, func(a, b use) int { return a.Resource - b.Resource })
	return uses, others
}

// uncover counts what a pod uses of a resource that has just got a position.
func (x *Index) uncover(p *podEntry, name v1.ResourceName, position int) {
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
func (x *Index) DropPod(uid apitypes.UID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.removePod(x.pods[uid])
}

func (x *Index) removePod(p *podEntry) {
	if p == nil {
		return
	}
	n := p.on
	x.mark(n)
	for _, u := range p.Uses {
		n.used[u.Resource] -= u.Amount
	}
	last := n.pods[len(n.pods)-1]
	n.pods[p.at], last.at = last, p.at
	n.pods[len(n.pods)-1] = nil
	n.pods = n.pods[:len(n.pods)-1]
	delete(x.pods, p.Object.UID)
	x.count(p, -1)
	x.eased, n.freed = true, x.asked+1
}

// count counts a pod in or out of those that could be evicted, or of those that go.
func (x *Index) count(p *podEntry, by int) {
	if p.Terminating {
		x.leaving.add(p.Priority, by)
		return
	}
	x.priorities.add(p.Priority, by)
}

// AnyLeaving reports whether a bound pod terminates.
func (x *Index) AnyLeaving() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.leaving) > 0
}

// Pod returns the bound pod as it was last seen, or nil.
func (x *Index) Pod(uid apitypes.UID) *v1.Pod {
	x.mu.Lock()
	defer x.mu.Unlock()
	if p := x.pods[uid]; p != nil {
		return p.Object
	}
	return nil
}

// MembersOn returns the members of gangs that are bound to the node and do not terminate.
func (x *Index) MembersOn(node string) []BoundPod {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := x.byName[node]
	if n == nil {
		return nil
	}
	var members []BoundPod
	for _, p := range n.pods {
		if p.Of != (gang.ID{}) && !p.Terminating {
			members = append(members, p.BoundPod)
		}
	}
	return members
}

// Answer ends the look at gangs that refresh began: those that may fit now are in the queue.
func (x *Index) Answer() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.answered = x.asked
}

// FreedUnseen reports whether something came free on the node that no look at gangs has answered yet, or that only the
// scheduler knows of, which has these pods there.
func (x *Index) FreedUnseen(node string, pods []fwk.PodInfo) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := x.byName[node]
	if n == nil || n.node == nil || n.freed > x.answered {
		return true
	}
	return slices.ContainsFunc(n.pods, func(p *podEntry) bool {
		return !slices.ContainsFunc(pods, func(info fwk.PodInfo) bool { return info.GetPod().UID == p.Object.UID })
	})
}

// AnyBelow reports whether a bound pod that is not terminating has a lower priority: without one there is no
// pod to evict.
func (x *Index) AnyBelow(priority int32) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.priorities.anyBelow(priority)
}

// MakesWay reports whether a bound pod of lower priority could be evicted or terminates.
func (x *Index) MakesWay(priority int32) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.priorities.anyBelow(priority) || x.leaving.anyBelow(priority)
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
