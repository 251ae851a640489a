package coscheduling

import (
	"cmp"
	"maps"
	"sync"

	v1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/podgroup"
	"berth.dev/berth/pkg/reservation"
)

// podGroups finds the PodGroups of gangs.
type podGroups struct {
	store cache.Store
	// declared returns what a group of another scheduler says, as a PodGroup; nil where none is followed.
	declared func(gang.ID) *schedulingv1alpha1.PodGroup
}

// get returns the PodGroup of the gang, or nil. That of a group of another scheduler says what the group says, and what
// users have written on the PodGroup that was generated for it.
func (g *podGroups) get(id gang.ID) *schedulingv1alpha1.PodGroup {
	var stored *schedulingv1alpha1.PodGroup
	if obj, exists, err := g.store.GetByKey(id.String()); err == nil && exists {
		stored = obj.(*schedulingv1alpha1.PodGroup)
	}
	if g.declared == nil || stored != nil && !podgroup.Generated(stored) {
		return stored
	}
	declared := g.declared(id)
	if declared == nil || stored == nil {
		return cmp.Or(declared, stored)
	}
	both := *declared
	both.Annotations, both.Status = maps.Clone(declared.Annotations), stored.Status
	maps.Copy(both.Annotations, stored.Annotations)
	return &both
}

// memberPods finds the pods that the ledger speaks of.
type memberPods struct {
	lister corelisters.PodLister
	mu     sync.RWMutex
	// finished hold the members that have ended, by namespace/name.
	finished []cache.Store
}

// addFinished adds a store of pods that have ended.
func (p *memberPods) addFinished(store cache.Store) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finished = append(p.finished, store)
}

// pod returns the member as the scheduler's informer has it, or nil if the name is another pod's by now.
func (p *memberPods) pod(r gang.Ref) *v1.Pod {
	pod, err := p.lister.Pods(r.Namespace).Get(r.Name)
	if err != nil || gang.UID(pod.UID) != r.UID {
		return nil
	}
	return pod
}

// remaining counts the pods that are still there.
func (p *memberPods) remaining(pods []reservation.AwaitedPod) int {
	left := 0
	for _, awaited := range pods {
		if p.pod(awaited.Ref) != nil {
			left++
		}
	}
	return left
}

// settled reports whether the pod has a node or is gone.
func (p *memberPods) settled(pod *v1.Pod) bool {
	now := p.pod(gangview.RefOf(pod))
	return now == nil || now.Spec.NodeName != ""
}

// any returns the member, also if it has ended, or nil.
func (p *memberPods) any(r gang.Ref) *v1.Pod {
	if pod := p.pod(r); pod != nil {
		return pod
	}
	if pod := p.ended(r.Namespace, r.Name); pod != nil && gang.UID(pod.UID) == r.UID {
		return pod
	}
	return nil
}

// ended returns the member of that name that has ended, or nil.
func (p *memberPods) ended(namespace, name string) *v1.Pod {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, store := range p.finished {
		if obj, exists, err := store.GetByKey(namespace + "/" + name); err == nil && exists {
			return obj.(*v1.Pod)
		}
	}
	return nil
}

// members tells which pods are members of gangs.
type members struct{ policy *gangview.OwnerPolicy }

// of returns the gang that the pod is a member of, if any. A pod that means to be in a gang but says so wrongly is an
// error.
func (m members) of(pod *v1.Pod) (gangview.Membership, error) {
	return m.policy.GangOf(pod) //nolint:wrapcheck // it says what is wrong
}

// twice reports whether the pod is in a native group and in one of ours: the native one alone counts.
func (m members) twice(pod *v1.Pod) bool {
	if pod.Spec.SchedulingGroup == nil {
		return false
	}
	alone := *pod
	alone.Spec.SchedulingGroup = nil
	return m.has(&alone)
}

// has reports whether the pod is, or means to be, a member of a gang.
func (m members) has(pod *v1.Pod) bool {
	of, err := m.of(pod)
	return err != nil || of.ID != gang.ID{}
}

// id returns the gang that the pod is a member of, or the zero ID.
func (m members) id(pod *v1.Pod) gang.ID {
	of, err := m.of(pod)
	if err != nil {
		return gang.ID{}
	}
	return of.ID
}
