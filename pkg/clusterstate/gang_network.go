package clusterstate

import (
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	kubeinformers "k8s.io/client-go/informers"

	"berth.dev/berth/pkg/informers"
)

// GangNetwork tells those who plan the gangs of a profile where nodes are in the network. It is safe for concurrent use.
type GangNetwork struct {
	places atomic.Pointer[GangPlaces]
}

// GangPlaces are where nodes are for gangs.
type GangPlaces struct {
	// Path returns the domains of a node, the widest level first, empty where it lies in none.
	Path func(*v1.Node) []string
	// Far returns what tells how far a node is from what these members talk to outside their gang, each counted so many times;
	// nil if they talk to nothing that has a node. It is called, and what it returns is used, within one scheduling cycle.
	Far func(members []*v1.Pod, counts []int) func(*v1.Node) int64
}

// GangNetworkOf returns the value for a profile of the scheduler.
func GangNetworkOf(factory kubeinformers.SharedInformerFactory, profile string) *GangNetwork {
	n, _ := informers.SharedBy(factory, profile, func() (*GangNetwork, error) { return &GangNetwork{}, nil })
	return n
}

// Follow makes gangs of the profile be planned by these places.
func (n *GangNetwork) Follow(places GangPlaces) { n.places.Store(&places) }

// Places returns what gangs of the profile are planned by; nil where they may lie anywhere.
func (n *GangNetwork) Places() *GangPlaces { return n.places.Load() }
