package process

import (
	"sync"

	kubeinformers "k8s.io/client-go/informers"

	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process/informers"
)

// Networks tells those who plan gangs where nodes are in the network of a profile. It is safe for concurrent use.
type Networks struct{ levels sync.Map }

// NetworksOf returns those of the scheduler to which the factory belongs.
func NetworksOf(factory kubeinformers.SharedInformerFactory) *Networks {
	n, _ := informers.Shared(factory, func() (*Networks, error) { return &Networks{}, nil })
	return n
}

// Follow makes gangs of the profile be planned by these levels.
func (n *Networks) Follow(profile string, levels podview.NetworkLevels) {
	n.levels.Store(profile, &levels)
}

// Levels returns what gangs of the profile are planned by; nil where they may lie anywhere.
func (n *Networks) Levels(profile string) *podview.NetworkLevels {
	levels, _ := n.levels.Load(profile)
	found, _ := levels.(*podview.NetworkLevels)
	return found
}
