package podgroup

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
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/informers"
)

// kind is the kind of PodGroups. A cluster that does not serve them is no obstacle: gangs that label their pods need
// none.
var kind = informers.CustomKind{
	Resource:    schedulingv1alpha1.SchemeGroupVersion.WithResource("podgroups"),
	AddToScheme: schedulingv1alpha1.AddToScheme,
	Object:      &schedulingv1alpha1.PodGroup{},
	List:        &schedulingv1alpha1.PodGroupList{},
	Reader:      "Coscheduling",
	Unread:      "gangs that name a PodGroup stay pending",
}

// NewClient returns a client for PodGroups.
func NewClient(config *restclient.Config) (*restclient.RESTClient, error) {
	return informers.NewCustomClient(config, kind) //nolint:wrapcheck // it says what it is for
}

// Informer watches PodGroups and, beside them, the members that have ended: the scheduler's own pod informer leaves
// out pods that have ended, and a member that has finished counts towards its gang's minimum where one that was deleted
// does not.
type Informer struct {
	cache.SharedIndexInformer
	// Ended has one informer for each label that makes a pod a member: a selector cannot say "either".
	Ended []cache.SharedIndexInformer
}

// NewInformer returns the factory's informer of PodGroups, which starts and syncs with all others.
func NewInformer(factory kubeinformers.SharedInformerFactory, client restclient.Interface) (*Informer, error) {
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	informer, ok := factory.InformerFor(kind.Object,
		func(cs clientset.Interface, resync time.Duration) cache.SharedIndexInformer {
			i := &Informer{SharedIndexInformer: informers.NewCustomInformer(factory, client, kind, resync, byNamespace)}
			for _, label := range gangview.Labels() {
				i.Ended = append(i.Ended, NewEndedInformer(cs, label, resync))
			}
			return i
		}).(*Informer)
	if !ok {
		return nil, errors.New("watching PodGroups: the informer factory has another informer for them")
	}
	return informer, nil
}

// RunWithContext runs all informers until ctx is done.
func (i *Informer) RunWithContext(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, f := range i.Ended {
		wg.Go(func() { f.RunWithContext(ctx) })
	}
	i.SharedIndexInformer.RunWithContext(ctx)
}

// NewEndedInformer watches the pods that have ended and have the label.
func NewEndedInformer(client clientset.Interface, label string, resync time.Duration) cache.SharedIndexInformer {
	ended := fields.AndSelectors(
		fields.OneTermNotEqualSelector("status.phase", string(v1.PodPending)),
		fields.OneTermNotEqualSelector("status.phase", string(v1.PodRunning)),
		fields.OneTermNotEqualSelector("status.phase", string(v1.PodUnknown)),
	).String()
	return coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, resync, cache.Indexers{},
		func(o *metav1.ListOptions) {
			o.FieldSelector, o.LabelSelector = ended, label
		})
}
