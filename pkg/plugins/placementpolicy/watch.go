package placementpolicy

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	placementv1alpha1 "berth.dev/berth/pkg/apis/placement/v1alpha1"
	"berth.dev/berth/pkg/policy"
	"berth.dev/berth/pkg/process/informers"
)

// watch registers what informers tell.
func (b *book) watch(factory kubeinformers.SharedInformerFactory) (synced []cache.InformerSynced, err error) {
	core := factory.Core().V1()
	err = core.Pods().Informer().AddIndexers(cache.Indexers{nominatedIndex: func(obj any) ([]string, error) {
		if pod, ok := obj.(*v1.Pod); ok && pod.Spec.NodeName == "" && pod.Status.NominatedNodeName != "" {
			return []string{""}, nil
		}
		return nil, nil
	}})
	if err != nil {
		return nil, fmt.Errorf("indexing nominated pods: %w", err)
	}
	for _, w := range []struct {
		what     string
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{"placement policies", b.policies, informers.Events(b.policySeen,
			func(*placementv1alpha1.PlacementPolicy) { b.renew() })},
		{"pods", core.Pods().Informer(), informers.Events(func(_, pod *v1.Pod) { b.recount(pod) }, b.recount)},
		{"nodes", core.Nodes().Informer(), informers.Events(b.nodeSeen, nil)},
		{"namespaces", core.Namespaces().Informer(), informers.Events(b.namespaceSeen, nil)},
	} {
		told, err := informers.Handle(factory, w.informer, w.handler)
		if err != nil {
			return nil, fmt.Errorf("watching %s: %w", w.what, err)
		}
		synced = append(synced, told.HasSynced)
	}
	return synced, nil
}

// policySeen tells a new spec from a new status, which this scheduler writes itself.
func (b *book) policySeen(before, after *placementv1alpha1.PlacementPolicy) {
	if before == nil || before.Generation != after.Generation || !equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		b.renew()
	}
}

// recount counts a pod by what the informer knows of it now, which may be newer than the event that tells of it. Until
// it has a node only Reserve and Unreserve say what it holds.
func (b *book) recount(pod *v1.Pod) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := b.view.Load()
	if v == nil {
		return // the first view counts all pods
	}
	known, err := b.pods.Pods(pod.Namespace).Get(pod.Name)
	switch {
	case err != nil || known.UID != pod.UID || known.Spec.NodeName != "" && !holds(known):
		v.ledger.Release(string(pod.UID))
	case known.Spec.NodeName != "":
		b.bind(v, known, nil)
	}
	b.status.Poke()
}

// nodeSeen counts the licenses of the node's pods in the pools that it is in now.
func (b *book) nodeSeen(before, after *v1.Node) {
	if before != nil && maps.Equal(before.Labels, after.Labels) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if v := b.view.Load(); v != nil {
		v.ledger.Mark(after.Name, b.marksOf(v, after))
		b.status.Poke()
	}
}

// namespaceSeen counts the pods of a namespace by its new labels, and has those tried that wait. If licenses come free,
// all pods are tried that wait for some.
func (b *book) namespaceSeen(before, after *v1.Namespace) {
	v := b.made()
	if v == nil || !v.set.ReadsNamespaces() || before != nil && maps.Equal(before.Labels, after.Labels) {
		return
	}
	usesBefore := b.uses(v)
	pods, _ := b.pods.Pods(after.Name).List(labels.Everything()) // a lister of a cache has no errors
	for _, pod := range pods {
		if pod.Spec.NodeName != "" {
			b.recount(pod)
		}
	}
	fewer := !slices.Equal(usesBefore, b.uses(v))
	b.wake(func(pod *v1.Pod) bool {
		return pod.Namespace == after.Name || fewer && b.demand(v, pod).UsesLicenses()
	})
}

// uses returns how many licenses are in use by the rules of a view.
func (b *book) uses(v *view) []policy.Use {
	b.mu.Lock()
	defer b.mu.Unlock()
	return v.ledger.Uses()
}
