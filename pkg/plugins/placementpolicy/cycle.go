package placementpolicy

import (
	"context"
	"strings"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/policy"
	"berth.dev/berth/pkg/process"
)

const stateKey fwk.StateKey = "berth.dev/" + Name

// cycleState is what a cycle keeps of the pod.
type cycleState struct {
	view   *view
	demand *policy.Demand
	// free is nil for a pod that uses no licenses.
	free *policy.Free
}

// Clone copies what AddPod and RemovePod change.
func (s *cycleState) Clone() fwk.StateData {
	c := *s
	if s.free != nil {
		c.free = s.free.Clone()
	}
	return &c
}

// PreFilter finds the rules that concern the pod. Without any, Filter is skipped.
func (p *Plugin) PreFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	v := p.policies.current()
	s := &cycleState{view: v, demand: p.policies.demand(v, pod)}
	if unknown := s.demand.UnknownDatasets; len(unknown) > 0 {
		// It may run all the same, anywhere.
		p.handle.EventRecorder().WithLogger(klog.FromContext(ctx)).Eventf(pod, nil, v1.EventTypeWarning, "UnknownDataset",
			"Scheduling", "no placement policy says where dataset %s is; it does not influence where the pod runs",
			strings.Join(unknown, ", "))
	}
	if s.demand.Refusal != "" {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, s.demand.Refusal)
	}
	if s.demand.UsesLicenses() {
		s.free = p.policies.freeFor(v, pod)
		p.countNominated(pod, s)
		p.countKept(pod, s)
		for other, node := range process.Simulated(pod, state, nodes) {
			p.policies.count(s, string(other.UID), other, p.policies.marksOf(v, node.Node()), true)
		}
	}
	state.Write(stateKey, s)
	if !s.demand.Filters() {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	return nil, nil
}

// countNominated counts the licenses of nominated pods of higher priority, for which pods were evicted. The framework
// adds such pods to their nominated nodes only, while licenses count on all nodes.
func (p *Plugin) countNominated(pod *v1.Pod, s *cycleState) {
	nominated, _ := p.policies.podIndex.ByIndex(nominatedIndex, "") // there is this index
	for _, obj := range nominated {
		other := obj.(*v1.Pod)
		if other.UID != pod.UID && corev1helpers.PodPriority(other) > corev1helpers.PodPriority(pod) {
			marks, _ := p.policies.marksByName(s.view, other.Status.NominatedNodeName)
			p.policies.count(s, string(other.UID), other, marks, true)
		}
	}
}

// countKept counts the licenses of members of gangs for which capacity is kept.
func (p *Plugin) countKept(pod *v1.Pod, s *cycleState) {
	p.policies.kept.Before(pod, p.handle.SnapshotSharedLister().NodeInfos(), func(other process.Planned) bool {
		marks, _ := p.policies.marksByName(s.view, other.Node)
		return p.policies.count(s, other.Key, other.Pod, marks, true)
	})
}

// PreFilterExtensions returns the plugin: evicting a pod frees its licenses.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return p }

// AddPod counts the licenses of a pod that is put on a node.
func (p *Plugin) AddPod(_ context.Context, state fwk.CycleState, _ *v1.Pod, other fwk.PodInfo,
	node fwk.NodeInfo) *fwk.Status {
	return p.count(state, other.GetPod(), node, true)
}

// RemovePod gives back the licenses of a pod that is taken off a node.
func (p *Plugin) RemovePod(_ context.Context, state fwk.CycleState, _ *v1.Pod, other fwk.PodInfo,
	node fwk.NodeInfo) *fwk.Status {
	return p.count(state, other.GetPod(), node, false)
}

// count sets whether another pod counts from now on, in a cycle of a pod that uses licenses.
func (p *Plugin) count(state fwk.CycleState, other *v1.Pod, node fwk.NodeInfo, counts bool) *fwk.Status {
	if s, err := process.Read[*cycleState](state, stateKey); err == nil && s.free != nil {
		p.policies.count(s, string(other.UID), other, p.policies.marksOf(s.view, node.Node()), counts)
	}
	return nil
}

// Filter refuses nodes that rules forbid or that have too few licenses left.
func (p *Plugin) Filter(_ context.Context, state fwk.CycleState, _ *v1.Pod, node fwk.NodeInfo) *fwk.Status {
	s, err := process.Read[*cycleState](state, stateKey)
	if err != nil {
		return fwk.AsStatus(err)
	}
	reason, evictable := s.demand.Refuses(p.policies.marksOf(s.view, node.Node()), s.free)
	switch {
	case reason == "":
		return nil
	case evictable:
		return fwk.NewStatus(fwk.Unschedulable, reason)
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, reason)
}

// PreScore skips Score for pods without preferred datasets.
func (p *Plugin) PreScore(_ context.Context, state fwk.CycleState, _ *v1.Pod, _ []fwk.NodeInfo) *fwk.Status {
	if s, err := process.Read[*cycleState](state, stateKey); err != nil || !s.demand.Scores() {
		return fwk.NewStatus(fwk.Skip)
	}
	return nil
}

// Score is how far the pod's datasets are from the node; NormalizeScore inverts it.
func (p *Plugin) Score(_ context.Context, state fwk.CycleState, _ *v1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	s, err := process.Read[*cycleState](state, stateKey)
	if err != nil {
		return 0, fwk.AsStatus(err)
	}
	return s.demand.Distance(p.policies.marksOf(s.view, node.Node())), nil
}

// ScoreExtensions returns the plugin.
func (p *Plugin) ScoreExtensions() fwk.ScoreExtensions { return p }

// NormalizeScore makes the nearest nodes the best. A score depends on its node alone: half of the data is always 50
// points.
func (*Plugin) NormalizeScore(_ context.Context, _ fwk.CycleState, _ *v1.Pod, scores fwk.NodeScoreList) *fwk.Status {
	for i := range scores {
		scores[i].Score = fwk.MaxScore - scores[i].Score
	}
	return nil
}

// Terms returns the distance that Score returns.
func (p *Plugin) Terms(_ context.Context, state fwk.CycleState, _ *v1.Pod, node fwk.NodeInfo) (process.Cost, error) {
	s, err := process.Read[*cycleState](state, stateKey)
	if err != nil {
		return process.Cost{}, err
	}
	return process.Cost{Unit: "% of the data", Terms: []process.Term{
		{Name: "distance", Amount: float64(s.demand.Distance(p.policies.marksOf(s.view, node.Node()))),
			For: "datasets that are not near"},
	}}, nil
}

// ReservesOpenly reports that a dry run need not call Reserve: what it records shows in the NodeInfo or by AddPod, too.
func (*Plugin) ReservesOpenly() {}

// Reserve takes the pod's licenses.
func (p *Plugin) Reserve(_ context.Context, state fwk.CycleState, pod *v1.Pod, nodeName string) *fwk.Status {
	if state.IsPodGroupSchedulingCycle() {
		return nil // a simulation takes nothing
	}
	if reason := p.policies.reserve(pod, nodeName); reason != "" {
		return fwk.NewStatus(fwk.Unschedulable, reason)
	}
	return nil
}

// Unreserve gives the pod's licenses back.
func (p *Plugin) Unreserve(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ string) {
	if !state.IsPodGroupSchedulingCycle() {
		p.policies.unreserve(pod)
	}
}
