package ipreservation

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/address"
	"berth.dev/berth/pkg/process"
)

const stateKey fwk.StateKey = "berth.dev/" + Name

// cycleState is what a cycle keeps of a pod that gets an address.
type cycleState struct{ plan *address.Plan }

// Clone copies what AddPod and RemovePod change.
func (s *cycleState) Clone() fwk.StateData { return &cycleState{s.plan.Clone()} }

// PreFilter finds where an address is free for the pod. Filter is skipped for pods that need none.
func (p *Plugin) PreFilter(_ context.Context, state fwk.CycleState, pod *v1.Pod,
	nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	ask, bad := p.addresses.ask(pod)
	switch {
	case bad != nil:
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, bad.Error())
	case ask == nil:
		return nil, fwk.NewStatus(fwk.Skip)
	}
	plan, reason := p.addresses.ledger.Plan(ask)
	if reason != "" {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, reason)
	}
	s := &cycleState{plan}
	p.countKept(pod, s)
	for other, node := range process.Simulated(pod, state, nodes) {
		p.add(s, other, string(other.UID), node)
	}
	state.Write(stateKey, s)
	return nil, nil
}

// countKept counts the addresses of members of gangs for which capacity is kept.
func (p *Plugin) countKept(pod *v1.Pod, s *cycleState) {
	nodes := p.handle.SnapshotSharedLister().NodeInfos()
	p.addresses.kept.Before(pod, nodes, func(other process.Planned) bool {
		node, err := nodes.Get(other.Node)
		return err == nil && p.add(s, other.Pod, other.Key, node)
	})
}

// add counts a pod under a key, and reports whether it asks for an address.
func (p *Plugin) add(s *cycleState, other *v1.Pod, key string, node fwk.NodeInfo) bool {
	ask, bad := p.addresses.ask(other)
	if bad != nil || ask == nil || ask.Pool == "" {
		return false // at most it has a reservation, which is counted
	}
	ask.UID = key
	s.plan.Add(p.addresses.ledger, ask, node.Node().Labels)
	return true
}

// PreFilterExtensions returns the plugin: pods that are tried together need an address each.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return p }

// AddPod counts the address of a pod that is put on a node.
func (p *Plugin) AddPod(_ context.Context, state fwk.CycleState, _ *v1.Pod, other fwk.PodInfo,
	node fwk.NodeInfo) *fwk.Status {
	return change(state, func(s *cycleState) { p.add(s, other.GetPod(), string(other.GetPod().UID), node) })
}

// RemovePod takes back what AddPod has counted.
func (*Plugin) RemovePod(_ context.Context, state fwk.CycleState, _ *v1.Pod, other fwk.PodInfo,
	_ fwk.NodeInfo) *fwk.Status {
	return change(state, func(s *cycleState) { s.plan.Remove(string(other.GetPod().UID)) })
}

// change changes the state of the cycle of a pod that gets an address.
func change(state fwk.CycleState, by func(*cycleState)) *fwk.Status {
	s, err := process.Read[*cycleState](state, stateKey)
	switch {
	case errors.Is(err, fwk.ErrNotFound):
		return nil
	case err != nil:
		return fwk.AsStatus(err)
	}
	by(s)
	return nil
}

// Filter refuses nodes where no address is free for the pod.
func (*Plugin) Filter(_ context.Context, state fwk.CycleState, _ *v1.Pod, node fwk.NodeInfo) *fwk.Status {
	s, err := process.Read[*cycleState](state, stateKey)
	if err != nil {
		return fwk.AsStatus(err)
	}
	reason, planned := s.plan.Refuses(node.Node().Labels)
	switch {
	case reason == "":
		return nil
	case planned:
		return fwk.NewStatus(fwk.Unschedulable, reason)
	}
	// Evicting a pod does not free its address: the release policy decides that later.
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, reason)
}

// ReservesOpenly reports that a dry run need not call Reserve: what it records shows in the NodeInfo or by AddPod, too.
func (*Plugin) ReservesOpenly() {}

// Reserve promises an address to the pod. It reads the pod again: the result of an earlier pod's cycle may be used, or
// a reservation may have come since.
func (p *Plugin) Reserve(_ context.Context, state fwk.CycleState, pod *v1.Pod, nodeName string) *fwk.Status {
	if state.IsPodGroupSchedulingCycle() {
		return nil // a simulation promises nothing
	}
	ask, bad := p.addresses.ask(pod)
	switch {
	case bad != nil:
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, bad.Error())
	case ask == nil:
		return nil
	}
	info, err := p.handle.SnapshotSharedLister().NodeInfos().Get(nodeName)
	if err != nil {
		return fwk.AsStatus(fmt.Errorf("reading node %s: %w", nodeName, err))
	}
	if _, reason := p.addresses.ledger.Reserve(ask, info.Node().Labels); reason != "" {
		return fwk.NewStatus(fwk.Unschedulable, reason)
	}
	p.addresses.upkeep.Poke()
	return nil
}

// Unreserve ends the promise. A reservation that PreBind has written stays, and the pod gets the same address again.
func (p *Plugin) Unreserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod, _ string) {
	if !state.IsPodGroupSchedulingCycle() && p.drop(ctx, pod) {
		p.addresses.upkeep.Poke()
		p.addresses.wake(ctx)
	}
}

// drop ends the promise to the pod, and wakes the next pod of its name, which waits for that.
func (p *Plugin) drop(ctx context.Context, pod *v1.Pod) bool {
	if !p.addresses.ledger.Drop(string(pod.UID)) {
		return false
	}
	p.addresses.wakePod(ctx, nameOf(pod), string(pod.UID))
	return true
}
