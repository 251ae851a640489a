package preempt

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
)

// preemptorsAtOnce bounds the result of Preemptors.
const preemptorsAtOnce = 16

// stockBegins records that the scheduler's own preemption may evict pods for the pod, until these have terminated and
// the pod is tried again.
//
// While the evictions are requested, the queue wakes the pod only for the end of the last victim. If two pods have
// chosen the same victims, that end may have been before, and nothing else would wake the pod for minutes.
//
// After the requests, every event wakes the pod. If the scheduler does not know by then that the victims terminate, it
// would evict others on another node.
func (e *Evictor) stockBegins(pod *v1.Pod) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.begin(&request{name: stockName(pod.Namespace, pod.Name), only: pod}).stock = time.Now()
}

// stockEnds records that the scheduler's own preemption evicts no pods for the pod.
func (e *Evictor) stockEnds(pod *v1.Pod) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.work, stockName(pod.Namespace, pod.Name))
}

// stockName is the name of the request of the scheduler's own preemption for a pod.
func stockName(namespace, name string) string { return "preemption for " + podName(namespace, name) }

// stockEvicts records that the eviction of a victim for the pod was requested.
func (e *Evictor) stockEvicts(by klog.KMetadata, victim *v1.Pod) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if w := e.work[stockName(by.GetNamespace(), by.GetName())]; w != nil {
		w.node = victim.Spec.NodeName
		w.awaited = append(w.awaited, victim)
		w.await([]*v1.Pod{victim}, time.Now())
	}
}

// Preemptors returns pods for which the scheduler's own preemption evicts others and which should be tried again: those
// that it has not returned for the longest time.
func (e *Evictor) Preemptors() []gang.Ref {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []*attempt
	for _, w := range e.work {
		if !w.stock.IsZero() {
			all = append(all, w)
		}
	}
	slices.SortFunc(all, func(a, b *attempt) int {
		return cmp.Or(a.stock.Compare(b.stock), cmp.Compare(a.request.name, b.request.name))
	})
	refs := make([]gang.Ref, min(preemptorsAtOnce, len(all)))
	for i := range refs {
		refs[i], all[i].stock = read.RefOf(all[i].request.only), time.Now()
	}
	return refs
}

// stockPreemption returns the scheduler's own preemption plugin of the profile, or nil if it has none.
func stockPreemption(profile framework.Framework) *defaultpreemption.DefaultPreemption {
	for _, plugin := range profile.PreEnqueuePlugins() {
		if stock, ok := plugin.(*defaultpreemption.DefaultPreemption); ok {
			return stock
		}
	}
	return nil
}

// Guard makes the scheduler's own preemption spare gangs: it evicts only members beyond the minimum, and no pod for a
// member of a gang that has not started. Because it chooses victims on each node separately, it may choose too many
// members of a gang in total: a member that its gang needs by then is not evicted.
func (p *Profile) Guard() {
	stock := stockPreemption(p.framework)
	if stock == nil {
		return
	}
	eligible := stock.IsEligiblePod
	stock.IsEligiblePod = func(node fwk.NodeInfo, victim preemption.Victim, preemptor *v1.Pod) bool {
		return eligible(node, victim, preemptor) && p.spares(node, victim, preemptor)
	}
	evict := stock.Executor.PreemptPod
	stock.Executor.PreemptPod = func(ctx context.Context, on preemption.Candidate, by preemption.ExecutorPreemptor,
		victim *v1.Pod, plugin string) (bool, error) {
		if now := time.Now(); by.Type() == string(fwk.PodKeyType) {
			if !p.evictor.Ledger.Evictions.EvictMember(gang.UID(victim.UID), now.Add(grace), now) {
				return false, fmt.Errorf("evicting pod %s/%s: its gang needs it now", victim.Namespace, victim.Name)
			}
		}
		inMemory, err := evict(ctx, on, by, victim, plugin)
		if err == nil && !inMemory {
			p.evictor.stockEvicts(by, victim)
		}
		return inMemory, err
	}
	stock.MoreImportantVictim = p.losses.moreImportant(stock.MoreImportantVictim)
	stock.Evaluator.Interface = &byLossOnNodes{stock.Evaluator.Interface, &p.losses}
}

// spares reports whether every gang keeps its minimum if the victim is evicted from the node.
func (p *Profile) spares(node fwk.NodeInfo, victim preemption.Victim, preemptor *v1.Pod) bool {
	e := p.evictor
	if e.Members.Has(preemptor) && !e.Ledger.Cycles.Standing(gang.UID(preemptor.UID)).Alone {
		return false
	}
	for _, info := range victim.Pods() {
		pod := info.GetPod()
		if pod.DeletionTimestamp != nil {
			continue // it terminates in any case: the preemptor waits for that, and evicts no other pod
		}
		if !e.Members.Has(pod) {
			continue
		}
		if with, _ := e.Sources.Owners.Together(pod); with != "" ||
			!e.Ledger.Evictions.Surplus(gang.UID(pod.UID), p.among(node, pod, preemptor), time.Now()) {
			return false
		}
	}
	return true
}

// among returns the members of the pod's gang on the node with a lower priority than the preemptor.
func (p *Profile) among(node fwk.NodeInfo, pod, preemptor *v1.Pod) []gang.UID {
	known := p.evictor.Members
	id, priority := known.ID(pod), corev1helpers.PodPriority(preemptor)
	var uids []gang.UID
	for _, info := range node.GetPods() {
		if other := info.GetPod(); corev1helpers.PodPriority(other) < priority && known.ID(other) == id {
			uids = append(uids, gang.UID(other.UID))
		}
	}
	return uids
}
