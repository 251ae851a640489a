package placementpolicy

import (
	"fmt"
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	placementv1alpha1 "berth.dev/berth/pkg/apis/placement/v1alpha1"
	"berth.dev/berth/pkg/informers"
	"berth.dev/berth/pkg/policy"
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
			Set: b.policySeen, Gone: func(*placementv1alpha1.PlacementPolicy) { b.renew("") },
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
		b.renew("")
	}
}

// podSeen counts a pod that has a node.
func (b *book) podSeen(pod *v1.Pod) {
	waits := pod.Spec.NodeName == ""
	if waits && pod.Status.NominatedNodeName != "" {
		b.nominated.Store(pod.UID, pod)
	} else {
		b.nominated.Delete(pod.UID)
	}
	if waits {
		return
	}
	if !holds(pod) {
		b.release(pod)
		return
	}
	b.bind(pod)
}

// bind counts a pod by the rules of the moment. When the ledger counts by others already, these are known by now.
func (b *book) bind(pod *v1.Pod) {
	for {
		v := b.view.Load()
		if v == nil {
			return // the first view counts all pods
		}
		d := b.read(v, pod)
		var marks *policy.Marks
		if d.UsesLicenses() {
			marks = b.marksByName(v, pod.Spec.NodeName)
		}
		if b.ledger.Bind(string(pod.UID), pod.Spec.NodeName, d, marks) {
			if d.UsesLicenses() {
				b.status.Poke()
			}
			return
		}
	}
}

func (b *book) podGone(pod *v1.Pod) {
	b.nominated.Delete(pod.UID)
	b.release(pod)
}

func (b *book) release(pod *v1.Pod) {
	if b.ledger.Release(string(pod.UID)) {
		b.status.Poke()
	}
}

// nodeSeen counts the licenses of the node's pods in the pools that it is in now.
func (b *book) nodeSeen(before, after *v1.Node) {
	v := b.view.Load()
	if v == nil || len(v.set.Limits()) == 0 {
		return
	}
	if before != nil && maps.Equal(before.Labels, after.Labels) {
		return
	}
	b.ledger.Mark(after.Name, v.set, b.marksOf(v, after))
	b.status.Poke()
}

// namespaceSeen has the pods of a namespace looked at by its new labels.
func (b *book) namespaceSeen(before, after *v1.Namespace) {
	v := b.view.Load()
	if v == nil || !v.set.ReadsNamespaces() {
		return
	}
	if before != nil && maps.Equal(before.Labels, after.Labels) {
		return
	}
	b.renew(after.Name)
}
