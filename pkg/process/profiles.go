package process

import (
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Profiles holds the profiles of this process that run a plugin. It is safe for concurrent use.
type Profiles struct {
	mu     sync.RWMutex
	byName map[string]framework.Framework
	// traits is filled by the first call of Traits for a profile.
	traits map[string]*Traits
}

// Add adds a profile that runs the plugin.
func (p *Profiles) Add(profile framework.Framework) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byName == nil {
		p.byName = map[string]framework.Framework{}
	}
	p.byName[profile.ProfileName()] = profile
}

// Of returns the profile that schedules the pod, or nil if another scheduler does.
func (p *Profiles) Of(pod *v1.Pod) framework.Framework {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.byName[pod.Spec.SchedulerName]
}

// Traits returns the traits of the profile that schedules the pod, AllTraits if another scheduler does. Call it only
// after all plugins of the profile have been made.
func (p *Profiles) Traits(pod *v1.Pod) *Traits {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := pod.Spec.SchedulerName
	switch profile := p.byName[name]; {
	case profile == nil:
		return AllTraits
	case p.traits == nil:
		p.traits = map[string]*Traits{name: TraitsOf(profile)}
	case p.traits[name] == nil:
		p.traits[name] = TraitsOf(profile)
	}
	return p.traits[name]
}

// Claimed reports whether a DeviceClass serves the extended resource.
func (p *Profiles) Claimed(name v1.ResourceName) bool {
	profile := p.Any()
	return profile != nil && Claimed(profile, name)
}

// Any returns one of the profiles: the queue and the waiting pods are the same behind all of them.
func (p *Profiles) Any() framework.Framework {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, profile := range p.byName {
		return profile
	}
	return nil
}
