package gpuaware

import (
	"context"
	"fmt"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gpu/claimview"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/gpu/hamilock"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process/informers"
	"berth.dev/berth/pkg/signals"
	"berth.dev/berth/pkg/wellknown"
)

// shared is the state of all profiles of one scheduler: two profiles with a ledger each would assign the same share
// twice.
type shared struct {
	ledger *ledger
	locks  *hamilock.Locks
	views  *views
	claims *claimview.GPUs
	pods   cache.Store
	nodes  cache.Store
	// nodesKnown reports whether the informer has all nodes.
	nodesKnown cache.InformerSynced
	// recorder records events on pods.
	recorder events.EventRecorder
}

// sharedFor returns the state that the profiles of the handle's scheduler share, made and connected to the informers at
// the first call. Profiles that read GPUs under different names see different GPUs and share only ledger and locks.
func sharedFor(ctx context.Context, handle fwk.Handle, keys *gpuview.Keys) (*shared, error) {
	factory := handle.SharedInformerFactory()
	names := fmt.Sprintf("%#v", *keys)
	return informers.SharedBy(factory, names, func() (*shared, error) {
		l, err := informers.Shared(factory, func() (*ledger, error) { return newLedger(), nil })
		if err != nil {
			return nil, err
		}
		locks, err := informers.Shared(factory, func() (*hamilock.Locks, error) {
			return hamilock.New(handle.ClientSet(), handle.EventRecorder()), nil
		})
		if err != nil {
			return nil, err
		}
		nodes, err := informers.NewByNode[atomic.Pointer[view]](factory)
		if err != nil {
			return nil, err
		}
		claims, err := claimview.GPUsOf(factory, handle.SharedDRAManager(), keys.Drivers)
		if err != nil {
			return nil, err
		}
		c := &shared{
			ledger: l, locks: locks,
			views:  &views{ByNode: nodes, keys: keys, ledger: l, claims: claims, totals: newTotals()},
			claims: claims, recorder: handle.EventRecorder(),
			pods:  factory.Core().V1().Pods().Informer().GetStore(),
			nodes: factory.Core().V1().Nodes().Informer().GetStore(),
		}
		if err := c.watch(factory); err != nil {
			return nil, err
		}
		err = informers.WatchBadNodeValues(handle, names, func(node *v1.Node) []*wellknown.BadValue {
			_, bad := keys.ReadGPUNode(node)
			return bad
		})
		if err != nil {
			return nil, err
		}
		return c, publish(ctx, factory, c)
	})
}

// watch keeps the state up to date. The scheduler's pod informer reports pods that finish as deleted.
func (c *shared) watch(factory kubeinformers.SharedInformerFactory) error {
	if _, err := informers.Handle(factory, factory.Core().V1().Pods().Informer(), c.podEvents()); err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	nodes, err := informers.Handle(factory, factory.Core().V1().Nodes().Informer(), informers.Events(c.locks.NodeChanged,
		func(node *v1.Node) { c.views.totals.set(node.Name, nil) }))
	if err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	c.nodesKnown = nodes.HasSynced
	return nil
}

// podEvents handles the events of pods.
func (c *shared) podEvents() cache.ResourceEventHandler {
	return informers.Events(func(before, pod *v1.Pod) {
		c.followBound(before, pod)
		if before == nil {
			return
		}
		if podview.Finished(pod) {
			c.ledger.release(pod.UID)
		}
		if before.Status.Phase != pod.Status.Phase {
			c.locks.Wake(pod.Spec.NodeName)
		}
	}, func(pod *v1.Pod) {
		c.ledger.release(pod.UID)
		c.locks.Wake(pod.Spec.NodeName)
	})
}

// mayUseGPU reports whether the pod uses GPUs or claims what may be one.
func (c *shared) mayUseGPU(pod *v1.Pod) bool {
	return c.views.keys.MayUseGPU(pod) || c.claims.Recent() != nil && c.claims.Serves(pod)
}

// measured lists the nodes whose GPUs are measured, with the names that series may have for them. DCGM measures NVIDIA
// GPUs only.
func (c *shared) measured() []signals.Node {
	var all []signals.Node
	for _, obj := range c.nodes.List() {
		node := obj.(*v1.Node)
		if seen, _ := c.views.keys.ReadGPUNode(node); c.claims.GPUNode(seen).NVIDIA() {
			all = append(all, signals.Node{Name: node.Name, Hostname: node.Labels[v1.LabelHostname]})
		}
	}
	return all
}
