package coscheduling

import (
	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/preempt"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/tree"
)

// answers are what other plugins and the operator's tool may ask the plugin.
type answers struct{ shared *coordinator }

// Gang returns the gang that the pod is a member of in the eyes of this plugin, and how many members have to start
// together, 0 if that is not known. A pod that means to be in a gang but says so wrongly is in none.
func (a answers) Gang(pod *v1.Pod) (id gang.ID, minimum int) {
	id = a.shared.members.ID(pod)
	if v, known := a.shared.ledger.View(id); known {
		minimum = v.Minimum.Total
	}
	return id, minimum
}

// Together names the members of the pod's gang, or native group, that can only be evicted with it; empty for none.
func (a answers) Together(pod *v1.Pod) string {
	with, _ := a.shared.told.owners.Together(pod)
	return with
}

// Topology says within which levels the members of the pod's gang must stay together, and should; its zero value for a
// pod that is in no gang.
func (a answers) Topology(pod *v1.Pod) read.Topology {
	id := a.shared.members.ID(pod)
	if id == (gang.ID{}) {
		return read.Topology{}
	}
	levels, err := a.shared.members.Topology(id, pod)
	if err != nil {
		return read.Topology{} // its own cycle says why
	}
	return levels
}

// Groups says what the groups within the pod's gang need, nil if it has none.
func (a answers) Groups(pod *v1.Pod) *tree.Group {
	v, _ := a.shared.ledger.View(a.shared.members.ID(pod))
	return v.Minimum.Tree
}

// Loss says what the eviction of a pod loses.
func (a answers) Loss() *preempt.Loss { return a.shared.evictor.Sources.Loss }

// ReservesOpenly says that what Reserve takes note of shows in the NodeInfo or by AddPod as well, so that a dry run
// need not call it.
func (answers) ReservesOpenly() {}
