// Package costoptimized is the plugin that puts pods where they cost least.
//
// A pod's cost on a node is what the placement adds to the bill: its share of the node's price where the node runs
// anyway, all of it where the pod alone would keep the node, the price of GPUs that it makes useless to others, and the
// loss to interruptions that is to be expected. Spot nodes are open only to pods that tolerate them, by annotation,
// node selector, toleration or the profile's args. A node without a known price ranks in the middle or last, as the
// args say, and never as free.
package costoptimized

import (
	"context"
	"fmt"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"berth.dev/berth/pkg/cost/priceview"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gpu/claimview"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/process/informers"
	"berth.dev/berth/pkg/signals"
	"berth.dev/berth/pkg/wellknown"
)

// Name of the plugin in configurations.
const Name = "CostOptimized"

// Plugin is the CostOptimized plugin of one profile.
type Plugin struct {
	handle   fwk.Handle
	settings *settings
	nodes    *nodeViews
	gangs    *read.Gangs
	claims   *claimview.GPUs
	running  *runningPods
	waiting  *waiting
	// offers are views of nodes by what the nodes offer at what price.
	offers *lru.Cache
}

var (
	_ fwk.PreEnqueuePlugin  = &Plugin{}
	_ fwk.PreFilterPlugin   = &Plugin{}
	_ fwk.FilterPlugin      = &Plugin{}
	_ fwk.PreScorePlugin    = &Plugin{}
	_ fwk.ScorePlugin       = &Plugin{}
	_ fwk.SignPlugin        = &Plugin{}
	_ fwk.EnqueueExtensions = &Plugin{}
	_ process.NodeRuler     = &Plugin{}
)

// New makes the plugin for one profile.
func New(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	s, err := readArgs(obj, handle.ProfileName())
	if err != nil {
		return nil, err
	}
	factory := handle.SharedInformerFactory()
	prices, err := signals.StartPrices(ctx, factory, s.args.PriceSource)
	if err != nil {
		return nil, fmt.Errorf("reading prices for profile %s: %w", handle.ProfileName(), err)
	}
	nodes, err := informers.NewByNode[atomic.Pointer[nodeView]](factory)
	if err != nil {
		return nil, err
	}
	gpuview.ProfileKeysOf(factory).Add(&s.gpuKeys)
	claims, err := claimview.GPUsOf(factory, handle.SharedDRAManager(), s.gpuKeys.Drivers)
	if err != nil {
		return nil, err
	}
	gangs := read.GangsOf(factory)
	running, err := runningPodsOf(factory, s.gpuKeys, gangs)
	if err != nil {
		return nil, err
	}
	p := &Plugin{
		handle:   handle,
		settings: s,
		gangs:    gangs,
		claims:   claims,
		nodes:    &nodeViews{ByNode: nodes, settings: s, claims: claims, metrics: prices},
		running:  running,
		waiting:  newWaiting(clock.RealClock{}),
		offers:   lru.New(maxOffers),
	}
	if _, err := informers.Handle(factory, factory.Core().V1().Pods().Informer(), p.waiting.forgetter()); err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	err = informers.WatchBadNodeValues(handle, "price", func(node *v1.Node) []*wellknown.BadValue {
		_, _, bad := priceview.StatedPrice(node)
		return bad
	})
	if err != nil {
		return nil, err
	}
	go p.waiting.run(ctx, handle)
	return p, nil
}

// Name returns the plugin's name.
func (*Plugin) Name() string { return Name }

// signature is all that the plugin reads of a pod. Candidates' costs depend on the pod and on the candidate alone, so
// that pods that are alike here may share a scheduling cycle's result. It is encoded for each pod, without what most do
// not have.
type signature struct {
	Spot          string `json:",omitzero"`
	SpotStated    bool   `json:",omitzero"`
	AsksForSpot   bool   `json:",omitzero"`
	BelongsToNode bool   `json:",omitzero"`
	Request       any
	Gang          gang.ID `json:",omitzero"`
}

// SignPod returns what the plugin reads of a pod.
func (p *Plugin) SignPod(ctx context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	request := p.claims.Asked(ctx, priceview.ReadPod(&p.settings.gpuKeys, pod), pod)
	spot, stated := pod.Annotations[wellknown.SpotKey]
	return []fwk.SignFragment{{Key: "berth.dev/" + Name, Value: signature{
		Spot:          spot,
		SpotStated:    stated,
		AsksForSpot:   p.settings.capacityRules.AsksForSpot(pod),
		BelongsToNode: podview.BelongsToNode(pod),
		Request:       request.Signature(),
		Gang:          p.gangs.Of(pod),
	}}}, nil
}

// EventsToRegister names what can make a rejected pod schedulable: a node whose capacity type suits it, and a change of
// the pod's spot policy or of the window that it waits for.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		process.On(fwk.Node, fwk.Add|fwk.UpdateNodeLabel, p.afterNodeChange),
		process.On(fwk.TargetPod, process.OwnChange, p.afterPodChange),
	}, nil
}

func (p *Plugin) afterNodeChange(pod *v1.Pod, before, after *v1.Node) bool {
	policy, bad := p.spotPolicy(pod)
	rules := p.settings.capacityRules
	// A value that cannot be read keeps the pod out, and its event says so.
	return bad == nil && policy.Allows(rules.TypeOf(after)) && (before == nil || !policy.Allows(rules.TypeOf(before)))
}

func (p *Plugin) afterPodChange(_, before, after *v1.Pod) bool {
	now := p.waiting.now()
	waitBefore, badBefore := p.settings.waitFor(before, now)
	waitAfter, badAfter := p.settings.waitFor(after, now)
	if !waitBefore.same(waitAfter) || (badBefore == nil) != (badAfter == nil) {
		return true
	}
	policyBefore, badBefore := p.spotPolicy(before)
	policyAfter, badAfter := p.spotPolicy(after)
	return badAfter == nil && (badBefore != nil || policyBefore != policyAfter)
}
