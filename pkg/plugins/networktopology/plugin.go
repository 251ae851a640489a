// Package networktopology is the plugin that puts pods near those that they talk to.
//
// A node's score is how long data takes, on average by traffic, from the node to the pods of the same gang or app. Pods
// are counted by their domain at each level of the network, so that a node costs as many additions as there are levels.
// The plugin only scores: a pod far from all that it talks to starts all the same.
package networktopology

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/process/informers"
	"berth.dev/berth/pkg/topology"
)

// Name of the plugin in configurations.
const Name = "NetworkTopology"

const stateKey fwk.StateKey = "berth.dev/" + Name

// Plugin is the NetworkTopology plugin of one profile.
type Plugin struct {
	settings *settings
	peers    *peers
	places   *informers.ByNode[atomic.Pointer[topology.Place]]
	handle   fwk.Handle
}

var (
	_ fwk.PreFilterPlugin   = &Plugin{}
	_ fwk.PreScorePlugin    = &Plugin{}
	_ fwk.ScorePlugin       = &Plugin{}
	_ fwk.ReservePlugin     = &Plugin{}
	_ fwk.SignPlugin        = &Plugin{}
	_ fwk.EnqueueExtensions = &Plugin{}
)

// New makes the plugin for one profile.
func New(_ context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	s, err := readArgs(obj, handle.ProfileName())
	if err != nil {
		return nil, err
	}
	factory := handle.SharedInformerFactory()
	places, err := informers.NewByNode[atomic.Pointer[topology.Place]](factory)
	if err != nil {
		return nil, err
	}
	known, err := peersOf(factory, s.appLabel)
	if err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	p := &Plugin{settings: s, peers: known, places: places, handle: handle}
	if s.traffic[ofGang] > 0 {
		process.NetworksOf(factory).Follow(handle.ProfileName(), s.levels)
	}
	return p, nil
}

// Name returns the plugin's name.
func (*Plugin) Name() string { return Name }

// SignPod refuses pods that talk to others, whose best node depends on these. All other pods are alike to the plugin.
func (p *Plugin) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if p.peers.relate(pod, p.settings.traffic) != nil {
		return nil, fwk.NewStatus(fwk.Unschedulable, "the best node depends on where the pods are that this one talks to")
	}
	return nil, nil
}

// EventsToRegister names nothing: the plugin rejects no pod.
func (*Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) { return nil, nil }

// PreFilter finds the groups that the pod talks to.
func (p *Plugin) PreFilter(_ context.Context, state fwk.CycleState, pod *v1.Pod,
	_ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	r := p.peers.relate(pod, p.settings.traffic)
	if r == nil {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	state.Write(stateKey, r)
	return nil, nil
}

// PreFilterExtensions returns the plugin: planned siblings count, and pods that are to be evicted do not.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return p }

// AddPod counts another pod on the node.
func (p *Plugin) AddPod(_ context.Context, state fwk.CycleState, _ *v1.Pod, added fwk.PodInfo,
	node fwk.NodeInfo) *fwk.Status {
	return p.move(state, added.GetPod(), node, 1)
}

// RemovePod no longer counts another pod on the node.
func (p *Plugin) RemovePod(_ context.Context, state fwk.CycleState, _ *v1.Pod, removed fwk.PodInfo,
	node fwk.NodeInfo) *fwk.Status {
	return p.move(state, removed.GetPod(), node, -1)
}

func (p *Plugin) move(state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo, n int64) *fwk.Status {
	r, err := readState(state)
	if err != nil {
		return fwk.AsStatus(err)
	}
	if r != nil {
		r.shift(p.peers.groupsOf(pod), node.Node().Name, n)
	}
	return nil
}

// readState reads the groups that the pod talks to; nil for none.
func readState(state fwk.CycleState) (*relation, error) {
	r, err := process.Read[*relation](state, stateKey)
	if errors.Is(err, fwk.ErrNotFound) {
		return nil, nil
	}
	return r, err
}

// ReservesOpenly reports that a dry run need not call Reserve: what it records shows in the NodeInfo or by AddPod, too.
func (*Plugin) ReservesOpenly() {}

// Reserve counts the pod on its node from now on, before the API server knows.
func (p *Plugin) Reserve(_ context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	if !state.IsPodGroupSchedulingCycle() { // a dry run moves no pod
		p.peers.assume(pod, node)
	}
	return nil
}

// Unreserve no longer counts it.
func (p *Plugin) Unreserve(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ string) {
	if !state.IsPodGroupSchedulingCycle() {
		p.peers.release(pod.UID)
	}
}
