// Package placementpolicy is the plugin that holds pods to the rules of placement policies.
//
// A PlacementPolicy says how many licenses there are, where datasets are, and which nodes the pods of a namespace, a
// tenant or a certification may use. The plugin refuses nodes that a rule forbids and pods that no rule allows, and
// names the policy and the rule; it counts licenses from Reserve until the pod is gone; and it ranks nodes by the
// datasets that they hold. A rule that cannot be evaluated refuses the pods that it may concern.
package placementpolicy

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/candidates"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/process/informers"
)

// Name of the plugin in configurations.
const Name = "PlacementPolicy"

// Plugin is the PlacementPolicy plugin of one profile.
type Plugin struct {
	policies *policies
	handle   fwk.Handle
}

var (
	_ fwk.PreFilterPlugin     = &Plugin{}
	_ fwk.PreFilterExtensions = &Plugin{}
	_ fwk.FilterPlugin        = &Plugin{}
	_ fwk.PreScorePlugin      = &Plugin{}
	_ fwk.ScorePlugin         = &Plugin{}
	_ process.Scorer          = &Plugin{}
	_ candidates.Ranker       = &Plugin{}
	_ fwk.ReservePlugin       = &Plugin{}
	_ fwk.SignPlugin          = &Plugin{}
	_ fwk.EnqueueExtensions   = &Plugin{}
)

// New makes the plugin for one profile. It has no args: what it does is in the policies.
func New(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	if obj != nil {
		return nil, fmt.Errorf("reading args of %s in profile %s: it has none, got %T", Name, handle.ProfileName(), obj)
	}
	ps, err := informers.Shared(handle.SharedInformerFactory(), func() (*policies, error) {
		return newPolicies(ctx, handle)
	})
	if err != nil {
		return nil, err
	}
	return &Plugin{policies: ps, handle: handle}, nil
}

// Name returns the plugin's name.
func (*Plugin) Name() string { return Name }

// SignPod returns the rules that concern the pod, which are the same for pods with different labels as long as no rule
// distinguishes them.
func (p *Plugin) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	fragment := fwk.SignFragment{Key: "berth.dev/" + Name}
	if v := p.policies.view.Load(); v != nil {
		fragment.Value = p.policies.demand(v, pod).Key()
	} else {
		// The policies are not known yet, so it may be anything that they read.
		fragment.Value = []any{pod.Namespace, pod.Labels, pod.Annotations}
	}
	return []fwk.SignFragment{fragment}, nil
}

// EventsToRegister names what can make a rejected pod schedulable: a pod that gives licenses back, a node in other node
// sets than before, and a change of the pod itself. Policies are not among them: an event of a CRD that is not
// installed would keep the scheduler from starting. A change of policies wakes the pods that it concerns.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		process.On(fwk.AssignedPod, fwk.Update|fwk.Delete, p.afterPodChange), // of annotations, too
		process.On(fwk.Node, fwk.Add|fwk.UpdateNodeLabel, p.afterNodeChange),
		process.On(fwk.TargetPod, process.OwnChange, p.afterOwnChange),
	}, nil
}

// afterPodChange queues a pod that uses licenses when another gives some back. It updates the ledger, whose own handler
// may be called later: else the pod could be tried too early and not again.
func (p *Plugin) afterPodChange(pod, before, after *v1.Pod) bool {
	v := p.policies.current()
	if before == nil || !p.policies.demand(v, pod).UsesLicenses() {
		return false
	}
	held := p.policies.demand(v, before)
	if !held.UsesLicenses() || after != nil && p.policies.demand(v, after).Key() == held.Key() {
		return false
	}
	p.policies.recount(before)
	return true
}

// afterNodeChange queues a pod when a node may take it that could not before, or has changed pools.
func (p *Plugin) afterNodeChange(pod *v1.Pod, before, after *v1.Node) bool {
	v := p.policies.current()
	d, marks := p.policies.demand(v, pod), p.policies.marksOf(v, after)
	if before != nil {
		if v.set.MarksOf(before) == marks {
			return false
		}
		if d.UsesLicenses() {
			p.policies.nodeSeen(before, after) // as with pods
			return true
		}
	}
	return d.Refusal == "" && d.Forbids(marks) == ""
}

// afterOwnChange queues a pod when other rules concern it than before.
func (p *Plugin) afterOwnChange(_, before, after *v1.Pod) bool {
	v := p.policies.current()
	return p.policies.demand(v, before).Key() != p.policies.demand(v, after).Key()
}
