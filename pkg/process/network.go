package process

import (
	"sync"

	kubeinformers "k8s.io/client-go/informers"

	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process/informers"
)

// Networks holds the network levels by which gangs are planned, by profile. It is safe for concurrent use.
type Networks struct{ levels sync.Map }

// NetworksOf returns the networks of the scheduler to which the factory belongs.
func NetworksOf(factory kubeinformers.SharedInformerFactory) *Networks {
	n, _ := informers.Shared(factory, func() (*Networks, error) { return &Networks{}, nil })
	return n
}

// Follow sets the levels by which gangs of the profile are planned.
func (n *Networks) Follow(profile string, levels podview.NetworkLevels) {
	n.levels.Store(profile, &levels)
}

// Levels returns the levels by which gangs of the profile are planned, nil if there are none.
func (n *Networks) Levels(profile string) *podview.NetworkLevels {
	levels, _ := n.levels.Load(profile)
	found, _ := levels.(*podview.NetworkLevels)
	return found
}
