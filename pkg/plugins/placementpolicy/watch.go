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
	"k8s.io/klog/v2"

	berthv1alpha1 "berth.dev/berth/pkg/apis/berth/v1alpha1"
	"berth.dev/berth/pkg/policy"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/process/informers"
)

// watch registers the handlers of informers.
func (ps *policies) watch(factory kubeinformers.SharedInformerFactory) (synced []cache.InformerSynced, err error) {
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
		{"placement policies", ps.informer, informers.Events(ps.policySeen,
			func(*berthv1alpha1.PlacementPolicy) { ps.renew() })},
		{"pods", core.Pods().Informer(), informers.Events(func(_, pod *v1.Pod) { ps.recount(pod) }, ps.recount)},
		{"nodes", core.Nodes().Informer(), informers.Events(ps.nodeSeen, nil)},
		{"namespaces", core.Namespaces().Informer(), informers.Events(ps.namespaceSeen, nil)},
	} {
		registration, err := informers.Handle(factory, w.informer, w.handler)
		if err != nil {
			return nil, fmt.Errorf("watching %s: %w", w.what, err)
		}
		synced = append(synced, registration.HasSynced)
	}
	return synced, nil
}

// policySeen ignores changes of the status, which this scheduler writes itself.
func (ps *policies) policySeen(before, after *berthv1alpha1.PlacementPolicy) {
	if before == nil || before.Generation != after.Generation || !equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		ps.renew()
	}
}

// recount counts a pod as the informer has it now, which may be newer than the event. Before it has a node, only
// Reserve and Unreserve count it.
func (ps *policies) recount(pod *v1.Pod) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	v := ps.view.Load()
	if v == nil {
		return // the first view counts all pods
	}
	known, err := ps.pods.Pods(pod.Namespace).Get(pod.Name)
	switch {
	case err != nil || known.UID != pod.UID || known.Spec.NodeName != "" && !keepsLicenses(known):
		v.ledger.Release(string(pod.UID))
	case known.Spec.NodeName != "":
		ps.bind(v, known)
	}
	ps.status.Poke()
}

// nodeSeen counts the licenses of the node's pods in the node sets that the node is in now.
func (ps *policies) nodeSeen(before, after *v1.Node) {
	if before != nil && maps.Equal(before.Labels, after.Labels) {
		return
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if v := ps.view.Load(); v != nil {
		v.ledger.Mark(after.Name, ps.marksOf(v, after))
		ps.status.Poke()
	}
}

// namespaceSeen counts the pods of a namespace by its new labels, and wakes its pending pods. If licenses come free, it
// wakes all pods that use licenses.
func (ps *policies) namespaceSeen(before, after *v1.Namespace) {
	v := ps.made()
	if v == nil || !v.set.ReadsNamespaces() || before != nil && maps.Equal(before.Labels, after.Labels) {
		return
	}
	usesBefore := ps.uses(v)
	pods, _ := ps.pods.Pods(after.Name).List(labels.Everything()) // a lister of a cache has no errors
	for _, pod := range pods {
		if pod.Spec.NodeName != "" {
			ps.recount(pod)
		}
	}
	fewer := !slices.Equal(usesBefore, ps.uses(v))
	process.Wake(klog.Background(), ps.handle, "Labels of a namespace changed", func(pod *v1.Pod) bool {
		return pod.Namespace == after.Name || fewer && ps.demand(v, pod).UsesLicenses()
	})
}

// uses returns how many licenses are in use by the rules of a view.
func (ps *policies) uses(v *view) []policy.Use {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return v.ledger.Uses()
}
