package evictor

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"

	"berth.dev/berth/pkg/eviction"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/members"
)

// guard has the scheduler's own preemption leave gangs whole: of a gang it takes only members beyond the minimum, and
// for a member of a gang that has not started it takes no pod. Which members these are depends on the node, so that it
// may choose on two nodes at a time what together is too much: a member that its gang has come to need is not evicted.
type guard struct {
	Members *members.Directory
	Ledger  *gang.Ledger
	// Together names the members of the pod's gang that can only be evicted with it, empty for none.
	Together func(*v1.Pod) (with string, whole bool)
	// Preempting is told of those that are evicted.
	Preempting *Preempting
}

// watch guards the victims of the plugin.
func (g *guard) watch(stock *defaultpreemption.DefaultPreemption) {
	eligible := stock.IsEligiblePod
	stock.IsEligiblePod = func(node fwk.NodeInfo, victim preemption.Victim, preemptor *v1.Pod) bool {
		return eligible(node, victim, preemptor) && g.spares(node, victim, preemptor)
	}
	evict := stock.Executor.PreemptPod
	stock.Executor.PreemptPod = func(ctx context.Context, on preemption.Candidate, by preemption.ExecutorPreemptor,
		victim *v1.Pod, plugin string) (bool, error) {
		if now := time.Now(); by.Type() == string(fwk.PodKeyType) {
			if !g.Ledger.Evictions.Spare(gang.UID(victim.UID), now.Add(eviction.Grace), now) {
				return false, fmt.Errorf("evicting pod %s/%s: its gang needs it now", victim.Namespace, victim.Name)
			}
		}
		inMemory, err := evict(ctx, on, by, victim, plugin)
		if err == nil && !inMemory {
			g.Preempting.Evicted(gang.UID(by.UID()), victim, time.Now())
		}
		return inMemory, err
	}
}

// spares reports whether no gang is left with less than its minimum if the victim is evicted from the node.
func (g *guard) spares(node fwk.NodeInfo, victim preemption.Victim, preemptor *v1.Pod) bool {
	if g.Members.Has(preemptor) && !g.Ledger.Cycles.Standing(gang.UID(preemptor.UID)).Alone {
		return false
	}
	for _, info := range victim.Pods() {
		pod := info.GetPod()
		if pod.DeletionTimestamp != nil {
			continue // it goes in any case: a pod that is to have its room waits for that, and evicts no other
		}
		if with, _ := g.Together(pod); with != "" {
			return false
		}
		if g.Members.Has(pod) &&
			!g.Ledger.Evictions.Surplus(gang.UID(pod.UID), g.among(node, pod, preemptor), time.Now()) {
			return false
		}
	}
	return true
}

// among returns the members of the pod's gang on the node that are less important than the preemptor.
func (g *guard) among(node fwk.NodeInfo, pod, preemptor *v1.Pod) []gang.UID {
	id, priority := g.Members.ID(pod), corev1helpers.PodPriority(preemptor)
	var uids []gang.UID
	for _, info := range node.GetPods() {
		if other := info.GetPod(); corev1helpers.PodPriority(other) < priority && g.Members.ID(other) == id {
			uids = append(uids, gang.UID(other.UID))
		}
	}
	return uids
}
