package process

import (
	"sync/atomic"

	kubeinformers "k8s.io/client-go/informers"

	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process/informers"
)

// Network tells those who plan the gangs of a profile where nodes are in the network. It is safe for concurrent use.
type Network struct {
	levels atomic.Pointer[podview.NetworkLevels]
}

// NetworkOf returns the value for a profile of the scheduler.
func NetworkOf(factory kubeinformers.SharedInformerFactory, profile string) *Network {
	s, _ := informers.SharedBy(factory, profile, func() (*Network, error) { return &Network{}, nil })
	return s
}

// Follow makes gangs of the profile be planned by these levels.
func (s *Network) Follow(levels podview.NetworkLevels) { s.levels.Store(&levels) }

// Levels returns what gangs of the profile are planned by; nil where they may lie anywhere.
func (s *Network) Levels() *podview.NetworkLevels { return s.levels.Load() }
