package placementpolicy

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/candidates"
	"berth.dev/berth/pkg/process"
)

// Candidates leaves it to the plugins that rank every pod.
func (*Plugin) Candidates() int { return candidates.AnyNumber }

// Class is the node sets that the node is in.
func (p *Plugin) Class(key candidates.Key, info fwk.NodeInfo) (_ candidates.Key, class any) {
	v := p.policies.current()
	marks := p.policies.marksOf(v, info.Node())
	key.All = append(key.All, marks...)
	return key, &marked{v.set, marks}
}

// Basis is the rules, which say what the node sets are.
func (p *Plugin) Basis() any { return p.policies.current().set }

// Judge judges for every pod that PreFilter lets pass.
func (p *Plugin) Judge(_ context.Context, state fwk.CycleState, _ *v1.Pod) candidates.Judge {
	s, err := process.Read[*cycleState](state, stateKey)
	if err != nil {
		return nil
	}
	return &judge{s}
}

// judge judges classes for one pod. Of classes by newer rules than the cycle's it does not know.
type judge struct{ *cycleState }

// Refuses reports whether Filter refuses the nodes of the class.
func (j *judge) Refuses(class any) bool {
	c := class.(*marked)
	if c.set != j.view.set {
		return false
	}
	reason, _ := j.demand.Refuses(c.marks, j.free)
	return reason != ""
}

// Score is how far the pod's datasets are from the nodes.
func (j *judge) Score(class any, _ fwk.NodeInfo) (int64, *fwk.Status) {
	c := class.(*marked)
	if c.set != j.view.set {
		return fwk.MaxScore, nil
	}
	return j.demand.Distance(c.marks), nil
}
