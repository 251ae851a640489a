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
	// stock holds the filters of the profiles of which they have been asked for, by name.
	stock map[string]*stockFilters
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

// filters returns the filters of Kubernetes that decide where the pod may be: all if another scheduler places it. A profile must
// have all its plugins before.
func (p *profiles) filters(pod *v1.Pod) *stockFilters {
	p.mu.RLock()
	known, profile := p.stock[pod.Spec.SchedulerName], p.byName[pod.Spec.SchedulerName]
	p.mu.RUnlock()
	switch {
	case profile == nil:
		return allStockFilters
	case known != nil:
		return known
	}
	f := stockFiltersOf(profile)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stock == nil {
		p.stock = map[string]*stockFilters{}
	}
	p.stock[pod.Spec.SchedulerName] = f
	return f
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
