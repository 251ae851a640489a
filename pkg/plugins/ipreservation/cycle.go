package ipreservation

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/address"
	"berth.dev/berth/pkg/clusterwide"
	"berth.dev/berth/pkg/cycles"
	"berth.dev/berth/pkg/wellknown"
)

const stateKey fwk.StateKey = "berth.dev/" + Name

// cycleState is what a cycle keeps of a pod that gets an address.
type cycleState struct{ plan *address.Plan }

// Clone copies what AddPod and RemovePod change.
func (s *cycleState) Clone() fwk.StateData { return &cycleState{s.plan.Clone()} }

// PreFilter works out where an address is free for the pod. Without need of one Filter is skipped.
func (p *Plugin) PreFilter(_ context.Context, state fwk.CycleState, pod *v1.Pod,
	nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	p.book.begin()
	if p.book.indifferentTo(pod) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	ask, bad := askOf(pod)
	if bad != nil {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, bad.Error())
	}
	if !p.book.concerned(ask) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	plan, reason := p.book.ledger.Plan(ask)
	if reason != "" {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, reason)
	}
	s := &cycleState{plan}
	p.countNominated(pod, s)
	p.countKept(pod, s)
	for other, node := range clusterwide.Simulated(pod, state, nodes) {
		p.add(s, other, node)
	}
	state.Write(stateKey, s)
	return nil, nil
}

// countNominated keeps addresses for the pods that others were evicted for: an address is free on many nodes, and the
// framework tells Filter of such pods on their own nodes alone.
func (p *Plugin) countNominated(pod *v1.Pod, s *cycleState) {
	for _, obj := range p.book.nominated.Range {
		other := obj.(*v1.Pod)
		if !goesBefore(other, pod) {
			continue
		}
		if node, err := p.handle.SnapshotSharedLister().NodeInfos().Get(other.Status.NominatedNodeName); err == nil {
			p.add(s, other, node)
		}
	}
}

// countKept keeps addresses for the members of gangs for which others were evicted, or whose turn it is.
func (p *Plugin) countKept(pod *v1.Pod, s *cycleState) {
	nodes := p.handle.SnapshotSharedLister().NodeInfos()
	p.book.wide.Before(pod, nodes, func(other clusterwide.Planned) bool {
		node, err := nodes.Get(other.Node)
		return err == nil && p.addAs(s, other.Pod, other.Key, node)
	})
}

// goesBefore reports whether an address is kept for the nominated pod against the other one. Of two nominated pods of
// the same priority it is always the same one, so that they do not wait for each other.
func goesBefore(nominated, pod *v1.Pod) bool {
	theirs, ours := corev1helpers.PodPriority(nominated), corev1helpers.PodPriority(pod)
	switch {
	case nominated.UID == pod.UID || theirs < ours:
		return false
	case theirs > ours || pod.Status.NominatedNodeName == "":
		return true
	}
	return nominated.UID < pod.UID
}

func (p *Plugin) add(s *cycleState, other *v1.Pod, node fwk.NodeInfo) {
	p.addAs(s, other, string(other.UID), node)
}

// addAs counts the pod under a key, and reports whether it asks for an address.
func (p *Plugin) addAs(s *cycleState, other *v1.Pod, key string, node fwk.NodeInfo) bool {
	if _, asks := other.Annotations[wellknown.IPPoolKey]; !asks {
		return false // at most it has a reservation, which is counted
	}
	ask, bad := askOf(other)
	if bad != nil {
		return false
	}
	ask.Pod = key
	s.plan.Add(&p.book.ledger, ask, node.Node().Labels)
	return true
}

// PreFilterExtensions returns the plugin: pods that are tried together need an address each.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return p }

// AddPod counts the address of a pod that is put on a node.
func (p *Plugin) AddPod(_ context.Context, state fwk.CycleState, _ *v1.Pod, other fwk.PodInfo,
	node fwk.NodeInfo) *fwk.Status {
	return change(state, func(s *cycleState) { p.add(s, other.GetPod(), node) })
}

// RemovePod takes back what AddPod has counted.
func (*Plugin) RemovePod(_ context.Context, state fwk.CycleState, _ *v1.Pod, other fwk.PodInfo,
	_ fwk.NodeInfo) *fwk.Status {
	return change(state, func(s *cycleState) { s.plan.Remove(string(other.GetPod().UID)) })
}

// change changes the state of the cycle of a pod that gets an address.
func change(state fwk.CycleState, by func(*cycleState)) *fwk.Status {
	s, err := cycles.Read[*cycleState](state, stateKey)
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
	s, err := cycles.Read[*cycleState](state, stateKey)
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
	// Evicting a pod does not free its address: that is for the release policy to say, later.
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, reason)
}

// ReservesOpenly says that what Reserve takes note of shows in the NodeInfo or by AddPod as well, so that a dry run
// need not call it.
func (*Plugin) ReservesOpenly() {}

// Reserve promises an address to the pod. It reads the pod again: the result of an earlier pod's cycle may be used, or
// a reservation may have come since.
func (p *Plugin) Reserve(_ context.Context, state fwk.CycleState, pod *v1.Pod, nodeName string) *fwk.Status {
	if state.IsPodGroupSchedulingCycle() || p.book.indifferentTo(pod) {
		return nil // a simulation promises nothing
	}
	ask, bad := askOf(pod)
	if bad != nil {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, bad.Error())
	}
	if !p.book.concerned(ask) {
		return nil
	}
	info, err := p.handle.SnapshotSharedLister().NodeInfos().Get(nodeName)
	if err != nil {
		return fwk.AsStatus(fmt.Errorf("reading node %s: %w", nodeName, err))
	}
	if _, reason := p.book.ledger.Reserve(ask, info.Node().Labels); reason != "" {
		return fwk.NewStatus(fwk.Unschedulable, reason)
	}
	p.book.status.Poke()
	return nil
}

// Unreserve ends the promise. A reservation that PreBind has written stays, and the pod gets the same address again.
func (p *Plugin) Unreserve(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ string) {
	if state.IsPodGroupSchedulingCycle() {
		return
	}
	if p.book.ledger.Drop(string(pod.UID)) {
		p.book.status.Poke()
		p.book.wake(calls{hopeful: true})
	}
}
