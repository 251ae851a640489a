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
	"berth.dev/berth/pkg/process/cycles"
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
	_ cycles.Scorer           = &Plugin{}
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
