package gangview

import (
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	kubeinformers "k8s.io/client-go/informers"

	"berth.dev/berth/pkg/informers"
)

// Network tells those who plan the gangs of a profile where nodes are in the network. It is safe for concurrent use.
type Network struct {
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

// NetworkOf returns the value for a profile of the scheduler.
func NetworkOf(factory kubeinformers.SharedInformerFactory, profile string) *Network {
	n, _ := informers.SharedBy(factory, profile, func() (*Network, error) { return &Network{}, nil })
	return n
}

// Follow makes gangs of the profile be planned by these places.
func (n *Network) Follow(places Places) { n.places.Store(&places) }

// Places returns what gangs of the profile are planned by; nil where they may lie anywhere.
func (n *Network) Places() *Places { return n.places.Load() }
