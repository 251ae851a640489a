package coscheduling

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/process"
)

// The keys of what a member's cycle keeps.
const (
	// nodesKey holds the nodes that the member may take.
	nodesKey fwk.StateKey = Name + "/nodes"
	// passedKey marks the cycle of a leader that has planned and lets others go first.
	passedKey fwk.StateKey = Name + "/passed"
	// firstKey marks the cycle of a member that waits for its siblings in PreBind rather than in Permit.
	firstKey fwk.StateKey = Name + "/first"
)

// nodeSet is nodes by name.
type nodeSet struct {
	sets.Set[string]
	// why says what else a user has to know of them, if anything.
	why string
}

// Clone returns the set itself, which is never changed.
func (s nodeSet) Clone() fwk.StateData { return s }

// mark is state without content.
type mark struct{}

// Clone returns the mark.
func (m mark) Clone() fwk.StateData { return m }

func marked(state fwk.CycleState, key fwk.StateKey) bool {
	_, err := state.Read(key)
	return err == nil
}

// confine sends a pod to some nodes only. The framework tries a node to which a pod was nominated before whatever the
// result of PreFilter says, so Filter has to know them, too.
func confine(state fwk.CycleState, nodes sets.Set[string]) (*fwk.PreFilterResult, *fwk.Status) {
	state.Write(nodesKey, nodeSet{Set: nodes})
	return &fwk.PreFilterResult{NodeNames: nodes}, nil
}

// PreFilter sends members to the nodes that they were assigned; the leader's makes the plan.
func (p *Plugin) PreFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	c := p.shared
	if !state.IsPodGroupSchedulingCycle() { // nor a dry run within the cycle of another pod
		c.backlog.Begin()
	}
	p.complete.Do(func() {
		p.othersPermit = len(p.framework.ListPlugins().Permit.Enabled) > 1
		p.evictor.Guard()
	})
	if bad := c.settings.classes.misstated(pod); bad != nil {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, bad.Error())
	}
	of, err := c.members.Of(pod)
	id := of.ID
	switch {
	case state.IsPodGroupSchedulingCycle(), err == nil && id == gang.ID{}:
		// A gang tries its members in such a cycle.
		if id == (gang.ID{}) {
			c.told.foreign(ctx, p.framework.EventRecorder(), pod)
		}
		return c.open()
	case err != nil:
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	switch cycle := c.ledger.Cycles.Of(gang.UID(pod.UID)); cycle.Purpose {
	case gang.Alone:
		return c.join(ctx, state, id, pod, nodes)
	case gang.Follow:
		p.forgetNominations(id, pod, cycle.Node)
		return confine(state, sets.New(cycle.Node))
	case gang.Lead:
		l := leading{p: p, ctx: ctx, state: state, id: id, pod: pod, demand: cycle.Demand}
		return l.plan(nodes)
	default:
		return nil, process.Reject(fwk.UnschedulableAndUnresolvable, cycle.Why)
	}
}

// open lets a pod go anywhere; its nodes are filtered only while something is kept for gangs, or hardware fails.
func (c *coordinator) open() (*fwk.PreFilterResult, *fwk.Status) {
	if c.holds.Gate.Any() || c.hardware.any() {
		return nil, nil
	}
	return nil, fwk.NewStatus(fwk.Skip)
}

// PreFilterExtensions returns nil: an assignment does not depend on the pods of its node that preemption adds or
// removes.
func (*Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter keeps a member off nodes that its plan does not give it and those with failing hardware, and all pods off
// capacity that is kept for a gang.
func (p *Plugin) Filter(_ context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) *fwk.Status {
	if data, err := state.Read(nodesKey); err == nil && !data.(nodeSet).Has(node.Node().Name) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "node(s) that the gang's plan does not give to this member")
	}
	if p.shared.hardware.on(node.Node().Name) && p.shared.members.Has(pod) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, failingHardware)
	}
	if to, refused := p.shared.holds.Gate.Refuse(pod, node, p.framework.SnapshotSharedLister().NodeInfos()); refused {
		return process.Reject(fwk.Unschedulable, capacity.KeptFor(to))
	}
	return nil
}
