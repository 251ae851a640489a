package podgroup

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	coreinformers "k8s.io/client-go/informers/core/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/informers"
)

// Kind is the kind of PodGroups. A cluster that does not serve them is no obstacle: gangs that label their pods need
// none.
var Kind = informers.CustomKind{
	Resource:    schedulingv1alpha1.SchemeGroupVersion.WithResource("podgroups"),
	AddToScheme: schedulingv1alpha1.AddToScheme,
	Object:      &schedulingv1alpha1.PodGroup{},
	List:        &schedulingv1alpha1.PodGroupList{},
	Reader:      "Coscheduling",
	Unread:      "gangs that name a PodGroup stay pending",
}

// NewEndedInformer watches the pods that have ended and have the label. The scheduler's own pod informer leaves them
// out, and a member that has finished counts towards its gang's minimum where one that was deleted does not. It has to
// be one for each label that makes a pod a member: a selector cannot say "either".
func NewEndedInformer(client clientset.Interface, label string) cache.SharedIndexInformer {
	ended := fields.AndSelectors(
		fields.OneTermNotEqualSelector("status.phase", string(v1.PodPending)),
		fields.OneTermNotEqualSelector("status.phase", string(v1.PodRunning)),
		fields.OneTermNotEqualSelector("status.phase", string(v1.PodUnknown)),
	).String()
	return coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, 0, cache.Indexers{},
		func(o *metav1.ListOptions) {
			o.FieldSelector, o.LabelSelector = ended, label
		})
}
