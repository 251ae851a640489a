package coscheduling

import (
	"context"
	"errors"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	kubeinformers "k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/informers"
)

// groupInformer watches PodGroups and, beside them, the members that have ended: the scheduler's own pod informer leaves
// out pods that have ended, and a member that has finished counts towards its gang's minimum where one that was deleted
// does not.
type groupInformer struct {
	cache.SharedIndexInformer
	// finished has one informer for each label that makes a pod a member: a selector cannot say "either".
	finished []cache.SharedIndexInformer
}

// informGroups returns the factory's informer of PodGroups, which starts and syncs with all others.
func informGroups(factory kubeinformers.SharedInformerFactory, client *podGroupClient) (*groupInformer, error) {
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	informer, ok := factory.InformerFor(podGroupKind.Object, func(cs clientset.Interface, resync time.Duration) cache.SharedIndexInformer {
		return &groupInformer{
			SharedIndexInformer: cache.NewSharedIndexInformer(informers.NewCustomListWatch(client.rest, podGroupKind), podGroupKind.Object, resync, byNamespace),
			finished:            newFinishedInformers(cs, resync),
		}
	}).(*groupInformer)
	if !ok {
		return nil, errors.New("watching PodGroups: the informer factory has another informer for them")
	}
	return informer, nil
}

// RunWithContext runs all informers until ctx is done.
func (i *groupInformer) RunWithContext(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, f := range i.finished {
		wg.Go(func() { f.RunWithContext(ctx) })
	}
	i.SharedIndexInformer.RunWithContext(ctx)
}

// newFinishedInformers watch the pods that have ended and have one of the labels that name a gang.
func newFinishedInformers(client clientset.Interface, resync time.Duration) []cache.SharedIndexInformer {
	var finished []cache.SharedIndexInformer
	for _, label := range gangview.Labels() {
		finished = append(finished, newFinishedInformer(client, label, resync))
	}
	return finished
}

// newFinishedInformer watches the pods that have ended and have the label.
func newFinishedInformer(client clientset.Interface, label string, resync time.Duration) cache.SharedIndexInformer {
	ended := fields.AndSelectors(
		fields.OneTermNotEqualSelector("status.phase", string(v1.PodPending)),
		fields.OneTermNotEqualSelector("status.phase", string(v1.PodRunning)),
		fields.OneTermNotEqualSelector("status.phase", string(v1.PodUnknown)),
	).String()
	return coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, resync, cache.Indexers{}, func(o *metav1.ListOptions) {
		o.FieldSelector, o.LabelSelector = ended, label
	})
}
