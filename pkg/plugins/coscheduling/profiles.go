package coscheduling

import (
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// profiles are those of this process that have the plugin.
type profiles struct {
	mu     sync.RWMutex
	byName map[string]framework.Framework
}

func (p *profiles) add(profile framework.Framework) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byName == nil {
		p.byName = map[string]framework.Framework{}
	}
	p.byName[profile.ProfileName()] = profile
}

// of returns the profile that schedules the pod, or nil if another scheduler does.
func (p *profiles) of(pod *v1.Pod) framework.Framework {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.byName[pod.Spec.SchedulerName]
}

// one returns one of the profiles: the queue and the waiting pods are the same behind all of them.
func (p *profiles) one() framework.Framework {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, profile := range p.byName {
		return profile
	}
	return nil
}
