package placementpolicy

import (
	"context"
	"errors"
	"strings"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/clusterwide"
	"berth.dev/berth/pkg/cycles"
	"berth.dev/berth/pkg/policy"
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

// PreFilter works out which rules concern the pod. Without any Filter is skipped.
func (p *Plugin) PreFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	p.book.status.Schedules()
	s, err := p.read(pod)
	if err != nil {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	p.tell(ctx, pod, s.demand)
	if s.demand.Refusal != "" {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, s.demand.Refusal)
	}
	if s.free != nil {
		p.countNominated(pod, s)
		p.countKept(pod, s)
		for other, node := range clusterwide.Simulated(pod, state, nodes) {
			s.free.Add(&p.book.ledger, string(other.UID), p.book.placed(s.view, other), p.book.marksOf(s.view, node.Node()))
		}
	}
	if s.demand.Filters() || s.demand.Scores() {
		state.Write(stateKey, s)
	}
	if !s.demand.Filters() {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	return nil, nil
}

// read works out the state of a pod that begins a cycle.
func (p *Plugin) read(pod *v1.Pod) (*cycleState, error) {
	for {
		v := p.book.current()
		d, err := p.book.demand(v, pod)
		if err != nil {
			return nil, err
		}
		s := &cycleState{view: v, demand: d}
		if !d.UsesLicenses() || d.Refusal != "" {
			return s, nil
		}
		// The ledger may count by newer rules already, which are known then.
		if free, ok := d.FreeFor(&p.book.ledger, string(pod.UID)); ok {
			s.free = free
			return s, nil
		}
	}
}

// tell says once of a pod that it names datasets that no policy knows. It may run all the same: there is no place to
// keep it near to.
func (p *Plugin) tell(ctx context.Context, pod *v1.Pod, d *policy.Demand) {
	if len(d.UnknownDatasets) == 0 {
		return
	}
	if _, told := p.book.told.Get(pod.UID); told {
		return
	}
	p.book.told.Add(pod.UID, true)
	p.handle.EventRecorder().WithLogger(klog.FromContext(ctx)).Eventf(pod, nil, v1.EventTypeWarning, "UnknownDataset",
		"Scheduling",
		"no placement policy says where dataset %s is; it does not influence where the pod runs",
		strings.Join(d.UnknownDatasets, ", "))
}

// countNominated keeps the licenses that evictions have freed for the pods of higher priority for which pods were
// evicted. The framework tells Filter of them on their own nodes alone.
func (p *Plugin) countNominated(pod *v1.Pod, s *cycleState) {
	for _, obj := range p.book.nominated.Range {
		other := obj.(*v1.Pod)
		if other.UID == pod.UID || corev1helpers.PodPriority(other) <= corev1helpers.PodPriority(pod) {
			continue
		}
		if d := p.book.placed(s.view, other); d.UsesLicenses() {
			s.free.Add(&p.book.ledger, string(other.UID), d, p.book.marksByName(s.view, other.Status.NominatedNodeName))
		}
	}
}

// countKept keeps licenses for the members of gangs for which others were evicted, or whose turn it is.
func (p *Plugin) countKept(pod *v1.Pod, s *cycleState) {
	p.book.wide.Before(pod, p.handle.SnapshotSharedLister().NodeInfos(), func(other clusterwide.Planned) bool {
		d := p.book.placed(s.view, other.Pod)
		if d.UsesLicenses() {
			s.free.Add(&p.book.ledger, other.Key, d, p.book.marksByName(s.view, other.Node))
		}
		return d.UsesLicenses()
	})
}

// PreFilterExtensions returns the plugin: evicting a pod frees its licenses.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return p }

// AddPod counts the licenses of a pod that is put on a node.
func (p *Plugin) AddPod(_ context.Context, state fwk.CycleState, _ *v1.Pod, other fwk.PodInfo,
	node fwk.NodeInfo) *fwk.Status {
	return p.change(state, other.GetPod(), node, (*policy.Free).Add)
}

// RemovePod gives back the licenses of a pod that is taken off a node.
func (p *Plugin) RemovePod(_ context.Context, state fwk.CycleState, _ *v1.Pod, other fwk.PodInfo,
	node fwk.NodeInfo) *fwk.Status {
	return p.change(state, other.GetPod(), node, (*policy.Free).Remove)
}

func (p *Plugin) change(state fwk.CycleState, other *v1.Pod, node fwk.NodeInfo,
	by func(*policy.Free, *policy.Ledger, string, *policy.Demand, *policy.Marks)) *fwk.Status {
	s, err := cycles.Read[*cycleState](state, stateKey)
	switch {
	case errors.Is(err, fwk.ErrNotFound):
		return nil
	case err != nil:
		return fwk.AsStatus(err)
	case s.free == nil:
		return nil
	}
	if d := p.book.placed(s.view, other); d.UsesLicenses() {
		by(s.free, &p.book.ledger, string(other.UID), d, p.book.marksOf(s.view, node.Node()))
	}
	return nil
}

// Filter refuses nodes that rules forbid or that have too few licenses left.
func (p *Plugin) Filter(_ context.Context, state fwk.CycleState, _ *v1.Pod, node fwk.NodeInfo) *fwk.Status {
	s, err := cycles.Read[*cycleState](state, stateKey)
	if err != nil {
		return fwk.AsStatus(err)
	}
	reason, evictable := s.demand.Refuses(p.book.marksOf(s.view, node.Node()), s.free)
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
	if s, err := cycles.Read[*cycleState](state, stateKey); err != nil || !s.demand.Scores() {
		return fwk.NewStatus(fwk.Skip)
	}
	return nil
}

// Score is how far the pod's datasets are from the node, so that it may be explained; NormalizeScore turns it round.
func (p *Plugin) Score(_ context.Context, state fwk.CycleState, _ *v1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	s, err := cycles.Read[*cycleState](state, stateKey)
	if err != nil {
		return 0, fwk.AsStatus(err)
	}
	return s.demand.Distance(p.book.marksOf(s.view, node.Node())), nil
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
func (p *Plugin) Terms(_ context.Context, state fwk.CycleState, _ *v1.Pod, node fwk.NodeInfo) (cycles.Cost, error) {
	s, err := cycles.Read[*cycleState](state, stateKey)
	if err != nil {
		return cycles.Cost{}, err
	}
	return cycles.Cost{Unit: "% of the data", Terms: []cycles.Term{
		{Name: "distance", Amount: float64(s.demand.Distance(p.book.marksOf(s.view, node.Node()))),
			For: "datasets that are not near"},
	}}, nil
}

// ReservesOpenly says that what Reserve takes note of shows in the NodeInfo or by AddPod as well, so that a dry run
// need not call it.
func (*Plugin) ReservesOpenly() {}

// Reserve takes the pod's licenses. Where the policies have changed since Filter, the node is judged by the new ones.
func (p *Plugin) Reserve(_ context.Context, state fwk.CycleState, pod *v1.Pod, nodeName string) *fwk.Status {
	if state.IsPodGroupSchedulingCycle() {
		return nil // a simulation takes nothing
	}
	for {
		v := p.book.current()
		d, err := p.book.demand(v, pod)
		if err != nil {
			return fwk.NewStatus(fwk.Unschedulable, err.Error())
		}
		if d.Refusal != "" {
			return fwk.NewStatus(fwk.Unschedulable, d.Refusal)
		}
		var marks *policy.Marks
		if d.Filters() {
			if marks = p.book.marksByName(v, nodeName); marks == nil {
				return fwk.NewStatus(fwk.Unschedulable, "node "+nodeName+" is gone")
			}
			if reason := d.Forbids(marks); reason != "" {
				return fwk.NewStatus(fwk.Unschedulable, reason)
			}
		}
		reason, ok := p.book.ledger.Reserve(pod, nodeName, d, marks)
		switch {
		case !ok:
			continue
		case reason != "":
			return fwk.NewStatus(fwk.Unschedulable, reason)
		}
		if d.UsesLicenses() {
			p.book.status.Poke()
		}
		return nil
	}
}

// Unreserve gives the pod's licenses back.
func (p *Plugin) Unreserve(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ string) {
	if state.IsPodGroupSchedulingCycle() {
		return
	}
	p.book.ledger.Unreserve(string(pod.UID))
	p.book.status.Poke()
}
