package network

import (
	"sync/atomic"

	kubeinformers "k8s.io/client-go/informers"

	"berth.dev/berth/pkg/informers"
	"berth.dev/berth/pkg/podview"
)

// Shared tells those who plan the gangs of a profile where nodes are in the network. It is safe for concurrent use.
type Shared struct {
	levels atomic.Pointer[podview.NetworkLevels]
}

// Of returns the value for a profile of the scheduler.
func Of(factory kubeinformers.SharedInformerFactory, profile string) *Shared {
	s, _ := informers.SharedBy(factory, profile, func() (*Shared, error) { return &Shared{}, nil })
	return s
}

// Follow makes gangs of the profile be planned by these levels.
func (s *Shared) Follow(levels podview.NetworkLevels) { s.levels.Store(&levels) }

// Levels returns what gangs of the profile are planned by; nil where they may lie anywhere.
func (s *Shared) Levels() *podview.NetworkLevels { return s.levels.Load() }
