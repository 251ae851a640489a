package overview

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/command"
	"berth.dev/berth/pkg/informers"
)

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

// Read reads once what tells of the workloads of a namespace, or of all namespaces with "". Pods have to be readable;
// what else is not is left out.
func (b *Book) Read(ctx context.Context, config *rest.Config, namespace string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making the API client: %w", err)
	}
	groups, err := informers.NewCustomClient(config, podGroups)
	if err != nil {
		return err
	}
	others, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making the client of Kueue's objects and of groups: %w", err)
	}
	each := func(kind string, required bool, list pager.ListPageFunc, set func(runtime.Object)) error {
		err := pager.New(list).EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
			set(object)
			return nil
		})
		switch {
		case err == nil, apierrors.IsNotFound(err) && !required:
			return nil
		case apierrors.IsForbidden(err) && !required:
			b.LeaveOut(kind, command.OneLine(err))
			return nil
		}
		return fmt.Errorf("listing %s: %w", kind, err)
	}
	pods := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.CoreV1().Pods(namespace).List(ctx, options)
	}
	if err := each("pods", true, pods, func(o runtime.Object) { b.SetPod(o.(*v1.Pod)) }); err != nil {
		return err
	}
	jobs := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.BatchV1().Jobs(namespace).List(ctx, options)
	}
	if err := each("jobs", false, jobs, func(o runtime.Object) { b.SetJob(o.(*batchv1.Job)) }); err != nil {
		return err
	}
	nodes := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.CoreV1().Nodes().List(ctx, options)
	}
	if err := each("nodes", false, nodes, func(o runtime.Object) { b.SetNode(o.(*v1.Node)) }); err != nil {
		return err
	}
	podGroupsOf := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		list := &schedulingv1alpha1.PodGroupList{}
		err := groups.Get().Resource(podGroups.Resource.Resource).NamespaceIfScoped(namespace, namespace != "").
			VersionedParams(&options, metav1.ParameterCodec).Do(ctx).Into(list)
		return list, err
	}
	set := func(o runtime.Object) { b.SetPodGroup(o.(*schedulingv1alpha1.PodGroup)) }
	if err := each("podgroups", false, podGroupsOf, set); err != nil {
		return err
	}
	resources, err := otherResources(client.Discovery())
	if err != nil {
		return err
	}
	for _, r := range resources {
		list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return otherClient(others, r, namespace).List(ctx, options)
		}
		err := each(r.Resource, false, list, func(o runtime.Object) { b.SetOther(o.(*unstructured.Unstructured)) })
		if err != nil {
			return err
		}
	}
	return nil
}

// otherClient reads a kind, of one namespace if it has them.
func otherClient(client dynamic.Interface, r schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if r.Resource == "clusterqueues" || namespace == "" {
		return client.Resource(r)
	}
	return client.Resource(r).Namespace(namespace)
}
