package clusterstate

import (
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	kubeinformers "k8s.io/client-go/informers"

	"berth.dev/berth/pkg/informers"
)

// GangNetwork tells those who plan the gangs of a profile where nodes are in the network. It is safe for concurrent use.
type GangNetwork struct {
	path atomic.Pointer[func(*v1.Node) []string]
}

// GangNetworkOf returns the value for a profile of the scheduler.
func GangNetworkOf(factory kubeinformers.SharedInformerFactory, profile string) *GangNetwork {
	n, _ := informers.SharedBy(factory, profile, func() (*GangNetwork, error) { return &GangNetwork{}, nil })
	return n
}

// Follow makes gangs of the profile be planned by these paths: the domains of a node, the widest level first, empty where it
// lies in none.
func (n *GangNetwork) Follow(path func(*v1.Node) []string) { n.path.Store(&path) }

// Path returns what tells the paths of nodes; nil where the gangs of the profile may lie anywhere.
func (n *GangNetwork) Path() func(*v1.Node) []string {
	if path := n.path.Load(); path != nil {
		return *path
	}
	return nil
}
