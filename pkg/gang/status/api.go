package status

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apitypes "k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
)

// writeTimeout ends a request that the API server, or a webhook that it asks, does not answer.
const writeTimeout = 10 * time.Second

// Client reads and writes objects.
type Client struct {
	// Groups is the informer's store of PodGroups, GroupClient writes them.
	Groups      cache.Store
	GroupClient restclient.Interface
	Pods        clientset.Interface
	// Owners reads the groups of other schedulers, and writes their status.
	Owners *Owners
}

// api reads the informer of PodGroups, and carries out writes.
type api struct{ Client }

// group returns the PodGroup of the gang, or nil.
func (a api) group(id gang.ID) *schedulingv1alpha1.PodGroup {
	obj, exists, err := a.Groups.GetByKey(id.String())
	if err != nil || !exists {
		return nil
	}
	return obj.(*schedulingv1alpha1.PodGroup)
}

// groups returns the gangs that have a PodGroup.
func (a api) groups() []gang.ID {
	var ids []gang.ID
	for _, obj := range a.Groups.List() {
		pg := obj.(*schedulingv1alpha1.PodGroup)
		ids = append(ids, gang.ID{Namespace: pg.Namespace, Name: pg.Name})
	}
	return ids
}

func (a api) create(ctx context.Context, pg *schedulingv1alpha1.PodGroup) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return a.GroupClient.Post().Namespace(pg.Namespace).Resource("podgroups").Body(pg).Do(ctx).Error()
}

// patch changes a PodGroup, or its status if subresource names it.
func (a api) patch(ctx context.Context, pg *schedulingv1alpha1.PodGroup, change map[string]any,
	subresource ...string) error {
	return a.send(ctx, a.GroupClient.Patch(apitypes.MergePatchType).SubResource(subresource...), "podgroups", pg, change)
}

// remove deletes the PodGroup in the version that is known.
func (a api) remove(ctx context.Context, pg *schedulingv1alpha1.PodGroup) error {
	return a.send(ctx, a.GroupClient.Delete().SetHeader("Content-Type", runtime.ContentTypeJSON), "podgroups", pg,
		&metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"},
			Preconditions: &metav1.Preconditions{UID: &pg.UID, ResourceVersion: &pg.ResourceVersion}})
}

func (a api) patchPodStatus(ctx context.Context, pod *v1.Pod, status map[string]any) error {
	return a.send(ctx, a.Pods.CoreV1().RESTClient().Patch(apitypes.StrategicMergePatchType).SubResource("status"), "pods",
		pod,
		map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
}

// send sends a request about an object. One that has changed or gone meanwhile is left as it is: the informer reports
// it.
func (a api) send(ctx context.Context, request *restclient.Request, resource string, object metav1.Object,
	body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encoding a change of %s %s: %w", resource, klog.KObj(object), err)
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err = request.Namespace(object.GetNamespace()).Resource(resource).Name(object.GetName()).Body(data).Do(ctx).Error()
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("changing %s %s: %w", resource, klog.KObj(object), err)
	}
	return nil
}
