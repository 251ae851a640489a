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

// preemptorsAtOnce is how many of the pods are looked at each time for which the scheduler's own preemption evicts
// others.
const preemptorsAtOnce = 16

// stockBegins notes that the scheduler's own preemption may evict pods for the pod, until these have gone and it is
// tried again.
//
// While it evicts, the queue does not wake the pod for what happens, and counts on the end of the last victim. Where
// two pods have chosen the same victims, that may have ended before. Nothing else would wake the pod for minutes.
//
// Once it has asked for the evictions, all that happens wakes the pod. What the scheduler has heard by then may not
// show that the victims go, so that it would evict others on another node.
func (e *Evictor) stockBegins(pod *v1.Pod) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.begin(&request{name: stockName(pod.Namespace, pod.Name), only: pod}).stock = time.Now()
}

// stockEnds notes that it evicts none for the pod.
func (e *Evictor) stockEnds(pod *v1.Pod) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.work, stockName(pod.Namespace, pod.Name))
}

// stockName is the name of the attempt of the scheduler's own preemption for a pod.
func stockName(namespace, name string) string { return "preemption for " + podName(namespace, name) }

// stockEvicts notes that the API server was asked to evict a victim for the pod.
func (e *Evictor) stockEvicts(by klog.KMetadata, victim *v1.Pod) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if w := e.work[stockName(by.GetNamespace(), by.GetName())]; w != nil {
		w.node = victim.Spec.NodeName
		w.awaited = append(w.awaited, victim)
		w.await([]*v1.Pod{victim}, time.Now())
	}
}

// Preemptors returns pods for which the scheduler's own preemption evicts others, those that have not been looked at
// for the longest time.
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

// Guard has the scheduler's own preemption leave gangs whole: of a gang it takes only members beyond the minimum, and
// for a member of a gang that has not started it takes no pod. Which members these are depends on the node, so that it
// may choose on two nodes at a time what together is too much: a member that its gang has come to need is not evicted.
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

// spares reports whether no gang is left with less than its minimum if the victim is evicted from the node.
func (p *Profile) spares(node fwk.NodeInfo, victim preemption.Victim, preemptor *v1.Pod) bool {
	e := p.evictor
	if e.Members.Has(preemptor) && !e.Ledger.Cycles.Standing(gang.UID(preemptor.UID)).Alone {
		return false
	}
	for _, info := range victim.Pods() {
		pod := info.GetPod()
		if pod.DeletionTimestamp != nil {
			continue // it goes in any case: a pod that is to have its room waits for that, and evicts no other
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

// among returns the members of the pod's gang on the node that are less important than the preemptor.
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
