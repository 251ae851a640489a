package placementpolicy

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/candidates"
	"berth.dev/berth/pkg/cycles"
	"berth.dev/berth/pkg/policy"
)

// nodeClass is the nodes that are in the same node sets.
type nodeClass struct{ marked }

// Candidates leaves it to the plugins that rank every pod.
func (*Plugin) Candidates() int { return candidates.AnyNumber }

// Class is the node sets that the node is in.
func (p *Plugin) Class(key candidates.Key, info fwk.NodeInfo) (_ candidates.Key, class any) {
	v := p.book.current()
	marks := p.book.marksOf(v, info.Node())
	key.All = append(key.All, marks.Key()...)
	return key, &nodeClass{marked{v.set, marks}}
}

// Basis is the rules, which say what the node sets are.
func (p *Plugin) Basis() any { return p.book.current().set }

// Judge judges for every pod.
func (p *Plugin) Judge(_ context.Context, state fwk.CycleState, _ *v1.Pod) candidates.Judge {
	s, err := cycles.Read[*cycleState](state, stateKey)
	if err != nil {
		return indifferent{} // no rule concerns the pod
	}
	return &judge{s}
}

// indifferent judges for pods that no rule concerns.
type indifferent struct{}

// Refuses refuses nothing.
func (indifferent) Refuses(any) bool { return false }

// Score is the same for all.
func (indifferent) Score(any, fwk.NodeInfo) (int64, *fwk.Status) { return 0, nil }

// judge judges classes for one pod.
type judge struct{ *cycleState }

// Refuses reports whether Filter refuses the nodes of the class. Of classes by newer rules than the cycle's it does not
// know.
func (j *judge) Refuses(class any) bool {
	marks, known := j.marks(class)
	if !known {
		return false
	}
	reason, _ := j.demand.Refuses(marks, j.free)
	return reason != ""
}

// Score is how far the pod's datasets are from the nodes.
func (j *judge) Score(class any, _ fwk.NodeInfo) (int64, *fwk.Status) {
	marks, known := j.marks(class)
	if !known {
		return fwk.MaxScore, nil
	}
	return j.demand.Distance(marks), nil
}

func (j *judge) marks(class any) (*policy.Marks, bool) {
	c := class.(*nodeClass)
	return c.marks, c.set == j.view.set
}
