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
)

// cluster is what all profiles of one scheduler know together: two profiles that each kept their own promises would
// promise the same share twice.
type cluster struct {
	ledger *ledger
	locks  *hamilock.Locks
	views  *views
	claims *claimview.GPUs
	fleet  *fleet
	// nodesKnown reports whether all nodes have been heard of.
	nodesKnown cache.InformerSynced
	// recorder records events on pods.
	recorder events.EventRecorder
}

// clusterFor returns the cluster of the handle's scheduler, made and connected to the informers at the first call.
// Profiles that read GPUs under different names see different GPUs and have clusters of their own, but their promises
// are in one ledger all the same.
func clusterFor(ctx context.Context, handle fwk.Handle, keys *gpuview.Keys) (*cluster, error) {
	factory := handle.SharedInformerFactory()
	names := fmt.Sprintf("%#v", *keys)
	return informers.SharedBy(factory, names, func() (*cluster, error) {
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
		c := &cluster{
			ledger: l, locks: locks,
			views: &views{ByNode: nodes, keys: keys, bad: informers.NewBadNodeValues(handle), ledger: l, claims: claims,
				totals: newTotals()},
			claims: claims, recorder: handle.EventRecorder(),
		}
		c.fleet = &fleet{
			cluster: c, pods: factory.Core().V1().Pods().Informer().GetIndexer(),
			nodes: factory.Core().V1().Nodes().Informer().GetStore(),
			dirty: map[string]struct{}{}, parts: map[string][]count{},
		}
		if err := c.watch(factory); err != nil {
			return nil, err
		}
		return c, publish(ctx, factory, c)
	})
}

// watch keeps the cluster up to date. The scheduler's pod informer reports pods that finish as deleted.
func (c *cluster) watch(factory kubeinformers.SharedInformerFactory) error {
	pods := factory.Core().V1().Pods().Informer()
	if err := c.fleet.watchPods(pods); err != nil {
		return fmt.Errorf("indexing pods by node: %w", err)
	}
	if _, err := informers.Handle(factory, pods, c.podEvents()); err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	seen := func(before, node *v1.Node) {
		c.seeNode(node.Name)
		c.locks.NodeChanged(before, node)
	}
	gone := func(node *v1.Node) {
		c.views.totals.set(node.Name, nil)
		c.views.bad.Forget(node.Name)
		c.seeNode(node.Name)
	}
	nodes, err := informers.Handle(factory, factory.Core().V1().Nodes().Informer(), informers.Events(seen, gone))
	if err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	c.nodesKnown = nodes.HasSynced
	return nil
}

// podEvents is how the cluster follows pods.
func (c *cluster) podEvents() cache.ResourceEventHandler {
	return informers.Events(func(before, pod *v1.Pod) {
		c.fleet.touchedBy(pod)
		c.holds(before, pod)
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
		c.fleet.touchedBy(pod)
		c.ledger.release(pod.UID)
		c.locks.Wake(pod.Spec.NodeName)
	})
}

// mayUseGPU reports whether the pod uses GPUs or claims what may be one.
func (c *cluster) mayUseGPU(pod *v1.Pod) bool {
	return c.views.keys.MayUseGPU(pod) || c.claims.Recent() != nil && c.claims.Serves(pod)
}

// seeNode counts the node as the informer knows it, and reports what cannot be read of it.
func (c *cluster) seeNode(name string) {
	c.fleet.seeing.Lock()
	defer c.fleet.seeing.Unlock()
	obj, exists, _ := c.fleet.nodes.GetByKey(name)
	if node, ok := obj.(*v1.Node); ok && exists {
		_, bad := c.views.keys.ReadGPUNode(node)
		c.views.bad.Report(node, bad)
	}
	c.fleet.touch(name)
}

// measured lists the nodes whose GPUs are measured, under the names that series may give them: DCGM knows NVIDIA's
// alone.
func (c *cluster) measured() []signals.Node {
	var all []signals.Node
	for _, obj := range c.fleet.nodes.List() {
		node := obj.(*v1.Node)
		if seen, _ := c.views.keys.ReadGPUNode(node); c.claims.GPUNode(seen).NVIDIA() {
			all = append(all, signals.Node{Name: node.Name, Hostname: node.Labels[v1.LabelHostname]})
		}
	}
	return all
}
