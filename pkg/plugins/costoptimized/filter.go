package costoptimized

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/cost/priceview"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/wellknown"
)

const podStateKey fwk.StateKey = Name + "/pod"

// podState is what the pod asks for. It does not change once written, so that Clone may share it.
type podState struct {
	spot    priceview.SpotPolicy
	request priceview.Pod
	gang    gang.ID
}

// Clone returns the state itself.
func (s *podState) Clone() fwk.StateData { return s }

// spotPolicy returns the spot policy of a pod: its own, else tolerance if its selector or tolerations name spot, else
// the profile's. Pods that belong to a node have no choice of capacity.
func (p *Plugin) spotPolicy(pod *v1.Pod) (priceview.SpotPolicy, *wellknown.BadValue) {
	if podview.BelongsToNode(pod) {
		return priceview.SpotTolerate, nil
	}
	if policy, ok, bad := priceview.PodSpotPolicy(pod); ok || bad != nil {
		return policy, bad
	}
	if p.settings.capacityRules.AsksForSpot(pod) {
		return priceview.SpotTolerate, nil
	}
	return priceview.SpotPolicy(*p.settings.args.Spot), nil
}

// PreFilter reads the pod once. It rejects pods with bad values, and skips Filter for pods that tolerate spot.
func (p *Plugin) PreFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod,
	_ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	s, bad := p.read(ctx, pod)
	if bad != nil {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, bad.Error())
	}
	reason, bad := p.settings.waitFor(pod, p.waiting.now())
	if bad != nil {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, bad.Error())
	}
	if reason.waits() { // the window has closed since the pod was let into the queue
		return nil, p.postpone(pod, reason)
	}
	state.Write(podStateKey, s)
	if s.spot == priceview.SpotTolerate {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	return nil, nil
}

func (p *Plugin) read(ctx context.Context, pod *v1.Pod) (*podState, *wellknown.BadValue) {
	policy, bad := p.spotPolicy(pod)
	if bad != nil {
		return nil, bad
	}
	return &podState{
		spot: policy, request: p.claims.Asked(ctx, priceview.ReadPod(&p.settings.gpuKeys, pod), pod), gang: p.gangs.Of(pod),
	}, nil
}

// PreFilterExtensions returns nil: what PreFilter reads does not depend on other pods.
func (*Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// podState returns what PreFilter wrote or, in a profile that enables scoring alone, reads the pod now.
func (p *Plugin) podState(state fwk.CycleState, pod *v1.Pod) (*podState, error) {
	s, err := process.Read[*podState](state, podStateKey)
	if errors.Is(err, fwk.ErrNotFound) {
		s, bad := p.read(context.Background(), pod)
		if bad != nil {
			return nil, bad
		}
		return s, nil
	}
	return s, err
}

// Filter keeps pods off capacity of a type that they do not accept. Evicting others would not help them.
func (p *Plugin) Filter(_ context.Context, state fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) *fwk.Status {
	s, err := p.podState(state, pod)
	if err != nil {
		return fwk.AsStatus(err)
	}
	if reason := against(s.spot, p.nodes.of(info.Node()).capacity); reason != "" {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, reason)
	}
	return nil
}

// nodeRule is a spot policy, with the rules of a profile.
type nodeRule struct {
	profile string
	policy  priceview.SpotPolicy
	rules   priceview.CapacityRules
}

// NodeRule is the pod's spot policy, nil if that is tolerance.
func (p *Plugin) NodeRule(pod *v1.Pod) process.NodeRule {
	policy, bad := p.spotPolicy(pod)
	if bad != nil || policy == priceview.SpotTolerate {
		return nil
	}
	return nodeRule{p.handle.ProfileName(), policy, p.settings.capacityRules}
}

// Key includes the profile, because each has rules of its own.
func (r nodeRule) Key() string { return r.profile + "/" + string(r.policy) }

// Against is the reason for which Filter refuses the node; empty for none.
func (r nodeRule) Against(node *v1.Node) string { return against(r.policy, r.rules.TypeOf(node)) }

// against is the reason against capacity that the policy does not allow; empty if it does.
func against(policy priceview.SpotPolicy, capacity priceview.CapacityType) string {
	switch {
	case policy.Allows(capacity):
		return ""
	case capacity == priceview.Spot:
		return reasonSpot
	}
	return reasonNotSpot
}

const (
	reasonSpot    = "node(s) were spot capacity that the pod does not tolerate (annotation " + wellknown.SpotKey + ")"
	reasonNotSpot = "node(s) were not the spot capacity that the pod requires (annotation " + wellknown.SpotKey + ")"
)
