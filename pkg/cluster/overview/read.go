package overview

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/process/informers"
	"berth.dev/berth/pkg/screen/command"
)

// podGroups is the kind of PodGroups as a reader of them sees it.
var podGroups = informers.CustomKind{
	Resource:    schedulingv1alpha1.SchemeGroupVersion.WithResource("podgroups"),
	AddToScheme: schedulingv1alpha1.AddToScheme,
	Object:      &schedulingv1alpha1.PodGroup{},
	List:        &schedulingv1alpha1.PodGroupList{},
	Reader:      "berth",
	Unread:      "gangs are shown by their pods alone",
}

// otherKinds are read where the server has them: what Kueue admits, and Kubernetes' own groups with their trees. Of the
// versions with the same kinds the first counts.
var otherKinds = []struct {
	group    string
	versions []string
	kinds    []string
}{
	{"kueue.x-k8s.io", []string{"v1beta2", "v1beta1"}, []string{"workloads", "localqueues", "clusterqueues"}},
	{"scheduling.k8s.io", []string{"v1alpha3"}, []string{"compositepodgroups", "podgroups"}},
}

// otherResources returns those of them that the server has.
func otherResources(client discovery.DiscoveryInterface) (found []schema.GroupVersionResource, err error) {
	groups, err := client.ServerGroups()
	if err != nil {
		return nil, fmt.Errorf("asking the API server for its groups: %w", err)
	}
	serves := map[string]bool{}
	for _, group := range groups.Groups {
		for _, served := range group.Versions {
			serves[served.GroupVersion] = true
		}
	}
	for _, other := range otherKinds {
		at := slices.IndexFunc(other.versions, func(version string) bool { return serves[other.group+"/"+version] })
		for i := 0; at >= 0 && i < len(other.kinds); i++ {
			found = append(found, schema.GroupVersionResource{Group: other.group, Version: other.versions[at],
				Resource: other.kinds[i]})
		}
	}
	return found, nil
}

// kind is a kind that is read.
type kind struct {
	name      string
	object    runtime.Object
	source    *cache.ListWatch
	transform cache.TransformFunc
}

// readKinds are all that the server has, in a namespace or in all with "". What others refer to comes first.
func readKinds(config *rest.Config, client kubernetes.Interface, namespace string) ([]kind, error) {
	groups, err := informers.NewCustomClient(config, podGroups)
	if err != nil {
		return nil, err
	}
	others, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client of Kueue's objects and of groups: %w", err)
	}
	resources, err := otherResources(client.Discovery())
	if err != nil {
		return nil, err
	}
	var kinds []kind
	for _, r := range resources {
		client := otherClient(others, r, namespace)
		kinds = append(kinds, kind{
			name: r.Resource, object: &unstructured.Unstructured{}, transform: trim,
			source: &cache.ListWatch{
				ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
					return client.List(ctx, options)
				},
				WatchFuncWithContext: client.Watch,
			},
		})
	}
	list := func(client cache.Getter, resource, namespace string) *cache.ListWatch {
		return cache.NewListWatchFromClient(client, resource, namespace, fields.Everything())
	}
	core, devices := client.CoreV1().RESTClient(), client.ResourceV1().RESTClient()
	return append(kinds, []kind{
		{name: "nodes", object: &v1.Node{}, source: list(core, "nodes", ""), transform: trimNode},
		{name: "pods", object: &v1.Pod{}, source: list(core, "pods", namespace), transform: trimPod},
		{name: "podgroups", object: &schedulingv1alpha1.PodGroup{}, source: list(groups, "podgroups", namespace),
			transform: trim},
		{name: "jobs", object: &batchv1.Job{}, source: list(client.BatchV1().RESTClient(), "jobs", namespace),
			transform: trim},
		{name: "resourceslices", object: &resourcev1.ResourceSlice{}, source: list(devices, "resourceslices", ""),
			transform: trim},
		{name: "resourceclaims", object: &resourcev1.ResourceClaim{}, source: list(devices, "resourceclaims", namespace),
			transform: trim},
		{name: "events", object: &v1.Event{}, transform: trimEvent,
			source: cache.NewListWatchFromClient(core, "events", namespace,
				fields.OneTermEqualSelector("type", v1.EventTypeWarning))},
	}...), nil
}

// otherClient reads a kind, of one namespace if it has them.
func otherClient(client dynamic.Interface, r schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if r.Resource == "clusterqueues" || namespace == "" {
		return client.Resource(r)
	}
	return client.Resource(r).Namespace(namespace)
}

// skipped says whether a kind is left out that could not be listed. One that is required is an error then; one that the
// server does not serve has no objects.
func (b *Book) skipped(kind string, required bool, err error) (bool, error) {
	switch {
	case err == nil:
		return false, nil
	case apierrors.IsNotFound(err) && !required:
		return true, nil
	case apierrors.IsForbidden(err) && !required:
		b.LeaveOut(kind, command.OneLine(err))
		return true, nil
	}
	return false, fmt.Errorf("listing %s: %w", kind, err)
}

// Read reads once what tells of the workloads of a namespace, or of all namespaces with "". Pods have to be readable;
// what else is not is left out.
func (b *Book) Read(ctx context.Context, config *rest.Config, namespace string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making the API client: %w", err)
	}
	kinds, err := readKinds(config, client, namespace)
	if err != nil {
		return err
	}
	for i := range kinds {
		k := &kinds[i]
		if k.name == "events" {
			continue
		}
		err := pager.New(k.source.ListWithContext).EachListItem(ctx, metav1.ListOptions{}, func(obj runtime.Object) error {
			b.Set(obj)
			return nil
		})
		if _, err := b.skipped(k.name, k.name == "pods", err); err != nil {
			return err
		}
	}
	return nil
}
