package coscheduling

import (
	v1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/kubeview"
)

// memberPods finds the pods that the ledger speaks of.
type memberPods struct {
	lister corelisters.PodLister
	// finished hold the members that have ended, by namespace/name.
	finished []cache.Store
}

// pod returns the member as the scheduler's informer has it, or nil if the name is another pod's by now.
func (p *memberPods) pod(r gang.Ref) *v1.Pod {
	pod, err := p.lister.Pods(r.Namespace).Get(r.Name)
	if err != nil || gang.UID(pod.UID) != r.UID {
		return nil
	}
	return pod
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
	for _, store := range p.finished {
		if obj, exists, err := store.GetByKey(namespace + "/" + name); err == nil && exists {
			return obj.(*v1.Pod)
		}
	}
	return nil
}

// isMember reports whether the pod is, or means to be, a member of a gang of ours. Native groups are left to the core.
func isMember(pod *v1.Pod) bool {
	if pod.Spec.SchedulingGroup != nil {
		return false
	}
	id, _, err := kubeview.GangOf(pod)
	return err != nil || id != gang.ID{}
}

// isMemberOf reports whether the pod is a member of the gang.
func isMemberOf(pod *v1.Pod, id gang.ID) bool {
	if pod.Spec.SchedulingGroup != nil || pod.Namespace != id.Namespace {
		return false
	}
	of, _, err := kubeview.GangOf(pod)
	return err == nil && of == id
}
