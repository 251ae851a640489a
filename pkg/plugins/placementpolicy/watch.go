package placementpolicy

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	placementv1alpha1 "berth.dev/berth/pkg/apis/placement/v1alpha1"
	"berth.dev/berth/pkg/policy"
	"berth.dev/berth/pkg/process/informers"
)

// watch registers what informers tell.
func (b *book) watch(factory kubeinformers.SharedInformerFactory) error {
	core := factory.Core().V1()
	for _, w := range []struct {
		what     string
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{"placement policies", b.policies, informers.Events[*placementv1alpha1.PlacementPolicy]{
			Set: b.policySeen, Gone: func(*placementv1alpha1.PlacementPolicy) { b.renew() },
		}},
		{"pods", core.Pods().Informer(), informers.Events[*v1.Pod]{
			Set: func(_, pod *v1.Pod) { b.podSeen(pod) }, Gone: b.podGone,
		}},
		{"nodes", core.Nodes().Informer(), informers.Events[*v1.Node]{Set: b.nodeSeen}},
		{"namespaces", core.Namespaces().Informer(), informers.Events[*v1.Namespace]{Set: b.namespaceSeen}},
	} {
		told, err := informers.Handle(factory, w.informer, w.handler)
		if err != nil {
			return fmt.Errorf("watching %s: %w", w.what, err)
		}
		b.synced = append(b.synced, told.HasSynced)
	}
	return nil
}

// policySeen tells a new spec from a new status, which this scheduler writes itself.
func (b *book) policySeen(before, after *placementv1alpha1.PlacementPolicy) {
	if before == nil || before.Generation != after.Generation || !equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		b.renew()
	}
}

// renew has the view replaced.
func (b *book) renew() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

func (b *book) podSeen(pod *v1.Pod) {
	if pod.Spec.NodeName == "" && pod.Status.NominatedNodeName != "" {
		b.nominated.Store(pod.UID, pod)
	} else {
		b.nominated.Delete(pod.UID)
	}
	b.recount(pod)
}

func (b *book) podGone(pod *v1.Pod) {
	b.nominated.Delete(pod.UID)
	b.recount(pod)
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

// namespaceSeen has the pods of a namespace looked at by its new labels. If they free licenses, all pods are tried that
// wait for some.
func (b *book) namespaceSeen(before, after *v1.Namespace) {
	v := b.view.Load()
	if v == nil || !v.set.ReadsNamespaces() || before != nil && maps.Equal(before.Labels, after.Labels) {
		return
	}
	usesBefore := b.uses(v)
	for _, pod := range b.listPods() {
		if pod.Namespace == after.Name && pod.Spec.NodeName != "" {
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
