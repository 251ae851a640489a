package read

import (
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	kubeinformers "k8s.io/client-go/informers"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/informers"
)

// Gangs tells the plugins of all profiles of one scheduler which gang a pod is a member of. The zero value knows what
// pods say themselves; with a policy it also knows the gangs of controllers whose pods say nothing.
type Gangs struct {
	policy atomic.Pointer[OwnerPolicy]
}

// GangsOf returns the value that the scheduler's profiles share.
func GangsOf(factory kubeinformers.SharedInformerFactory) *Gangs {
	g, _ := informers.Shared(factory, func() (*Gangs, error) { return &Gangs{}, nil })
	return g
}

// Follow makes the policy count. It has to be called while the profiles are made, before any informer runs: what has
// been told of a pod must not change while the pod is the same. So trees of native groups do not count.
func (g *Gangs) Follow(policy *OwnerPolicy) {
	stable := *policy
	stable.Trees = nil
	g.policy.Store(&stable)
}

// Of returns the gang of the pod, or in a tree of native groups the PodGroup; none if the pod says wrongly which:
// Coscheduling rejects such pods.
func (g *Gangs) Of(pod *v1.Pod) gang.ID {
	m, err := g.policy.Load().GangOf(pod)
	if err != nil {
		return gang.ID{}
	}
	return m.ID
}
