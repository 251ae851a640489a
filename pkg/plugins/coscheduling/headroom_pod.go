package coscheduling

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

// maxUse bounds what one pod uses of a resource in this account, so that the sum over a node's pods does not overflow: a
// pod may be bound by hand whatever it requests.
const maxUse = 1 << 52

// use is how much of a resource a pod uses, the resource being a position in the account's vectors.
type use struct {
	resource int
	amount   int64
}

// headPod is a pod that is bound to a node and has not ended.
type headPod struct {
	podCopy
	on *headNode
	// others is what the pod requests of resources that no node has offered so far, usually nil.
	others map[v1.ResourceName]int64
	// at is the position among the pods of the node, seen since when the account knows the pod to be there.
	at   int
	seen time.Time
}

// describePod returns what a copy of the account says about a pod.
func describePod(pod *v1.Pod, of gang.ID, uses []use) podCopy {
	p := podCopy{
		pod:         pod,
		uid:         gang.UID(pod.UID),
		of:          of,
		priority:    corev1helpers.PodPriority(pod),
		terminating: pod.DeletionTimestamp != nil,
		started:     pod.CreationTimestamp.Time,
		uses:        uses,
	}
	if pod.Status.StartTime != nil {
		p.started = pod.Status.StartTime.Time
	}
	return p
}

// setPod records a pod that came or changed, as a member of a gang if of is not zero. Pods without a node and pods that
// have ended use nothing.
func (h *headroom) setPod(pod *v1.Pod, of gang.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.pods[pod.UID]
	if pod.Spec.NodeName == "" || pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
		h.removePod(old)
		return
	}
	uses, others := h.usesOf(pod)
	if old != nil && old.on.name == pod.Spec.NodeName && slices.Equal(old.uses, uses) && maps.Equal(old.others, others) {
		h.eased = h.eased || !maps.Equal(old.pod.Labels, pod.Labels)
		h.count(old, -1)
		old.podCopy = describePod(pod, of, old.uses)
		h.count(old, 1)
		return
	}
	// A pod that shrinks in place shows in the shapes, unless what it gives back is not in this account.
	h.removePod(old)
	n := h.at(pod.Spec.NodeName)
	h.mark(n)
	p := &headPod{podCopy: describePod(pod, of, uses), on: n, others: others, at: len(n.pods), seen: time.Now()}
	if old != nil && old.on == n {
		p.seen = old.seen
	}
	n.pods = append(n.pods, p)
	for _, u := range uses {
		n.used[u.resource] += u.amount
	}
	h.pods[pod.UID] = p
	h.count(p, 1)
}

// usesOf returns what a bound pod uses, in the order of the resources' positions, and what it requests of others.
func (h *headroom) usesOf(pod *v1.Pod) (uses []use, others map[v1.ResourceName]int64) {
	amounts := podview.Amounts(resource.PodRequests(pod, resource.PodResourcesOptions{UseStatusResources: true}))
	amounts[v1.ResourcePods] = 1
	uses = make([]use, 0, len(amounts))
	for name, amount := range amounts {
		if i, known := h.index[name]; known {
			uses = append(uses, use{resource: i, amount: min(amount, maxUse)})
			continue
		}
		if others == nil {
			others = map[v1.ResourceName]int64{}
		}
		others[name] = min(amount, maxUse)
	}
	slices.SortFunc(uses, func(a, b use) int { return a.resource - b.resource })
	return uses, others
}

// uncover counts what a pod uses of a resource that has just got a position.
func (h *headroom) uncover(p *headPod, name v1.ResourceName, position int) {
	amount, requested := p.others[name]
	if !requested {
		return
	}
	// No shape is bounded by the resource so far, so the node is not marked.
	p.on.used[position] += amount
	// The new position is the last.
	p.uses = append(p.uses, use{resource: position, amount: amount})
	if delete(p.others, name); len(p.others) == 0 {
		p.others = nil
	}
}

// dropPod forgets a pod.
func (h *headroom) dropPod(uid apitypes.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.removePod(h.pods[uid])
}

func (h *headroom) removePod(p *headPod) {
	if p == nil {
		return
	}
	n := p.on
	h.mark(n)
	for _, u := range p.uses {
		n.used[u.resource] -= u.amount
	}
	last := n.pods[len(n.pods)-1]
	n.pods[p.at], last.at = last, p.at
	n.pods[len(n.pods)-1] = nil
	n.pods = n.pods[:len(n.pods)-1]
	delete(h.pods, p.pod.UID)
	h.count(p, -1)
	h.eased, n.freed = true, h.asked+1
}

// count counts a pod in or out of those that could be evicted, or of those that go.
func (h *headroom) count(p *headPod, by int) {
	if p.terminating {
		h.leaving.add(p.priority, by)
		return
	}
	h.priorities.add(p.priority, by)
}

// anyLeaving reports whether a bound pod terminates.
func (h *headroom) anyLeaving() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.leaving) > 0
}

// pod returns the bound pod as it was last seen, or nil.
func (h *headroom) pod(uid apitypes.UID) *v1.Pod {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.pods[uid]; p != nil {
		return p.pod
	}
	return nil
}

// membersOn returns the members of gangs that are bound to the node and do not terminate.
func (h *headroom) membersOn(node string) []podCopy {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.byName[node]
	if n == nil {
		return nil
	}
	var members []podCopy
	for _, p := range n.pods {
		if p.of != (gang.ID{}) && !p.terminating {
			members = append(members, p.podCopy)
		}
	}
	return members
}

// answer ends the look at gangs that refresh began: those that may fit now are in the queue.
func (h *headroom) answer() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answered = h.asked
}

// freedUnseen reports whether something came free on the node that no look at gangs has answered yet, or of which only the scheduler
// knows, which has these pods there.
func (h *headroom) freedUnseen(node string, pods []fwk.PodInfo) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.byName[node]
	if n == nil || n.node == nil || n.freed > h.answered {
		return true
	}
	return slices.ContainsFunc(n.pods, func(p *headPod) bool {
		return !slices.ContainsFunc(pods, func(info fwk.PodInfo) bool { return info.GetPod().UID == p.pod.UID })
	})
}

// anyBelow reports whether a bound pod that is not terminating has a lower priority: without one there is no
// pod to evict.
func (h *headroom) anyBelow(priority int32) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.priorities.anyBelow(priority)
}

// makesWay reports whether a bound pod of lower priority could be evicted or terminates.
func (h *headroom) makesWay(priority int32) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.priorities.anyBelow(priority) || h.leaving.anyBelow(priority)
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
