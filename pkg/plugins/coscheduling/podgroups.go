package coscheduling

import (
	restclient "k8s.io/client-go/rest"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/informers"
)

// podGroupKind is the kind of PodGroups. A cluster that does not serve them is no obstacle: gangs that label their pods
// need none.
var podGroupKind = informers.CustomKind{
	Resource:    schedulingv1alpha1.SchemeGroupVersion.WithResource("podgroups"),
	AddToScheme: schedulingv1alpha1.AddToScheme,
	Object:      &schedulingv1alpha1.PodGroup{},
	List:        &schedulingv1alpha1.PodGroupList{},
	Reader:      Name,
	Unread:      "gangs that name a PodGroup stay pending",
}

// podGroupClient reads and writes PodGroups.
type podGroupClient struct{ rest *restclient.RESTClient }

func newPodGroupClient(config *restclient.Config) (*podGroupClient, error) {
	rest, err := informers.NewCustomClient(config, podGroupKind)
	if err != nil {
		return nil, err
	}
	return &podGroupClient{rest: rest}, nil
}
