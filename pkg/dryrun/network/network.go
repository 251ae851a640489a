package network

import (
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	kubeinformers "k8s.io/client-go/informers"

	"berth.dev/berth/pkg/informers"
)

// Shared tells those who plan the gangs of a profile where nodes are in the network. It is safe for concurrent use.
type Shared struct {
	places atomic.Pointer[Places]
}

// Places are where nodes are for gangs.
type Places struct {
	// Path returns the domains of a node, the widest level first, empty where it lies in none.
	Path func(*v1.Node) []string
	// Far returns what tells how far a node is from what these members talk to outside their gang, each counted with a
	// weight; nil if they talk to nothing that has a node. It is called, and what it returns is used, within one
	// scheduling cycle.
	Far func(members []*v1.Pod, counts []int) func(*v1.Node) int64
}

// Of returns the value for a profile of the scheduler.
func Of(factory kubeinformers.SharedInformerFactory, profile string) *Shared {
	s, _ := informers.SharedBy(factory, profile, func() (*Shared, error) { return &Shared{}, nil })
	return s
}

// Follow makes gangs of the profile be planned by these places.
func (s *Shared) Follow(places Places) { s.places.Store(&places) }

// Places returns what gangs of the profile are planned by; nil where they may lie anywhere.
func (s *Shared) Places() *Places { return s.places.Load() }
