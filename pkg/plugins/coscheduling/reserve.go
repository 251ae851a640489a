package coscheduling

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/waiting"
	"berth.dev/berth/pkg/process"
)

// Reserve records that the member holds its assignment.
func (p *Plugin) Reserve(_ context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	if state.IsPodGroupSchedulingCycle() {
		return nil
	}
	c := p.shared
	if refused := p.refuseLate(pod, node); refused != nil {
		return refused
	}
	if !c.members.Has(pod) {
		return nil
	}
	if !c.ledger.Cycles.Reserve(gang.UID(pod.UID), node, time.Now()) {
		return fwk.NewStatus(fwk.Unschedulable, "the plan of the gang changed")
	}
	c.holds.Take(pod, node)
	return nil
}

// refuseLate turns the pod away if what it needs has been kept for a gang since its node was filtered, or has come free
// and who comes before the pod may not have been in the queue when its cycle began.
func (p *Plugin) refuseLate(pod *v1.Pod, name string) *fwk.Status {
	c := p.shared
	alone := !c.members.Has(pod) || c.ledger.Cycles.Standing(gang.UID(pod.UID)).Alone
	first := alone && c.loop.List.Priorities.ComesBefore(pod)
	if !c.holds.Gate.Any() && !first {
		return nil
	}
	nodes := p.framework.SnapshotSharedLister().NodeInfos()
	node, err := nodes.Get(name)
	if err != nil {
		return nil
	}
	if to, refused := c.holds.Gate.Refuse(pod, node, nodes); refused {
		return process.Reject(fwk.Unschedulable, capacity.KeptFor(to))
	}
	if !first || !c.backlog.FreedUnseen(name) {
		return nil
	}
	// The backlog has it tried again after them if there is room left. If there is none, it has yet to look for pods to
	// evict.
	time.AfterFunc(othersFirst, func() { c.effects.Activate(context.Background(), []gang.Ref{read.RefOf(pod)}) })
	return process.Reject(fwk.Unschedulable, triedFirst{})
}

// triedFirst says that others are tried before the pod for what came free.
type triedFirst struct{}

// String does not name them; there may be many.
func (t triedFirst) String() string { return t.Kind() }

// Kind says it.
func (triedFirst) Kind() string {
	return "node(s) with room that came free just now, which others may take first"
}

// othersFirst is how long a pod waits where others are tried first.
const othersFirst = 100 * time.Millisecond

// Unreserve records that the member has given its assignment back. It may be called without Reserve, when another
// plugin's Reserve failed before.
func (p *Plugin) Unreserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod, _ string) {
	if state.IsPodGroupSchedulingCycle() {
		return
	}
	c := p.shared
	if c.members.Has(pod) {
		c.effects.Apply(ctx, c.ledger.Cycles.Unreserve(gang.UID(pod.UID), c.settings.backoff, time.Now()))
	}
	// The account of the cluster does not know what is reserved, so that nothing else tells that it is free again.
	c.loop.Inbox.Happened(waiting.Happening{Kind: waiting.NeedsAnything})
}

// Permit lets the members of a gang go together, when the last of them holds its assignment.
func (p *Plugin) Permit(ctx context.Context, state fwk.CycleState, pod *v1.Pod, _ string) (*fwk.Status, time.Duration) {
	if !p.shared.members.Has(pod) {
		return nil, 0
	}
	c := p.shared
	uid := gang.UID(pod.UID)
	if standing := c.ledger.Cycles.Standing(uid); p.othersPermit && standing.Reserved {
		// Siblings may go only when no other plugin can turn this member away any more. One that they depend on waits
		// for them in PreBind, which comes after the Permit of all plugins.
		go c.effects.WhenPermitted(context.WithoutCancel(ctx), p.framework, uid)
		return fwk.NewStatus(fwk.Wait), standing.Patience(time.Now())
	}
	effects, wait, first, ok := c.ledger.Cycles.Permit(uid, time.Now())
	c.effects.Apply(ctx, effects)
	switch {
	case !ok:
		return fwk.NewStatus(fwk.Unschedulable, "the plan of the gang changed"), 0
	case first:
		state.Write(firstKey, mark{})
		return nil, 0
	case wait > 0:
		return fwk.NewStatus(fwk.Wait), wait
	default:
		return nil, 0
	}
}

// PreBindPreFlight announces PreBind for the members that wait in it.
func (p *Plugin) PreBindPreFlight(_ context.Context, state fwk.CycleState, _ *v1.Pod,
	_ string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	if marked(state, firstKey) {
		return &fwk.PreBindPreFlightResult{}, nil
	}
	return nil, fwk.NewStatus(fwk.Skip)
}

// PreBind is where a member waits for its siblings that had to write something first: they could not be scheduled
// before the plugins whose PreBind comes before this one had written it.
func (p *Plugin) PreBind(ctx context.Context, state fwk.CycleState, pod *v1.Pod, _ string) *fwk.Status {
	if !marked(state, firstKey) {
		return nil
	}
	c := p.shared
	told, leave := c.effects.Wait(gang.UID(pod.UID))
	defer leave()
	effects, wait, ok := c.ledger.Cycles.Prepared(gang.UID(pod.UID), time.Now())
	c.effects.Apply(ctx, effects)
	switch {
	case !ok:
		return fwk.NewStatus(fwk.Unschedulable, "the plan of the gang changed")
	case wait == 0:
		return nil
	}
	over := time.NewTimer(wait)
	defer over.Stop()
	select {
	case v := <-told:
		if v.Allowed {
			return nil
		}
		return fwk.NewStatus(fwk.Unschedulable, v.Reason)
	case <-over.C:
		return fwk.NewStatus(fwk.Unschedulable, "the schedule timeout of the gang is over")
	case <-ctx.Done():
		return fwk.AsStatus(ctx.Err())
	}
}
