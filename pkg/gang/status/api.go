package status

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	apitypes "k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	clientset "k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/process/informers"
)

// writeTimeout bounds a request: a webhook may not answer.
const writeTimeout = 10 * time.Second

// Client writes PodGroups, pods and the groups of other schedulers.
type Client struct {
	Groups restclient.Interface
	Pods   clientset.Interface
	// Owners reads the groups of other schedulers, and writes their status.
	Owners *Owners
}

func (c Client) create(ctx context.Context, pg *schedulingv1alpha1.PodGroup) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return c.Groups.Post().Namespace(pg.Namespace).Resource("podgroups").Body(pg).Do(ctx).Error()
}

// patch changes a PodGroup, or its status if subresource names it.
func (c Client) patch(ctx context.Context, pg *schedulingv1alpha1.PodGroup, change map[string]any,
	subresource ...string) error {
	return c.send(ctx, c.Groups.Patch(apitypes.MergePatchType).SubResource(subresource...), "podgroups", pg, change)
}

// remove deletes the PodGroup unless it has changed.
func (c Client) remove(ctx context.Context, pg *schedulingv1alpha1.PodGroup) error {
	return c.send(ctx, c.Groups.Delete().SetHeader("Content-Type", runtime.ContentTypeJSON), "podgroups", pg,
		&metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"},
			Preconditions: &metav1.Preconditions{UID: &pg.UID, ResourceVersion: &pg.ResourceVersion}})
}

func (c Client) patchPodStatus(ctx context.Context, pod *v1.Pod, status map[string]any) error {
	return c.send(ctx, c.Pods.CoreV1().RESTClient().Patch(apitypes.StrategicMergePatchType).SubResource("status"), "pods",
		pod, map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
}

// send sends a request about an object. It is no error if the object has changed or was deleted: the informer reports
// that.
func (c Client) send(ctx context.Context, request *restclient.Request, resource string, object metav1.Object,
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

// Kind is the kind of PodGroups. A cluster that does not serve them is no obstacle: gangs that label their pods need
// none.
var Kind = informers.CustomKind{
	Resource: schedulingv1alpha1.SchemeGroupVersion.WithResource("podgroups"),
	Object:   &schedulingv1alpha1.PodGroup{},
	List:     &schedulingv1alpha1.PodGroupList{},
	Reader:   "Coscheduling",
	Unread:   "gangs that name a PodGroup stay pending",
}

// NewEndedInformer watches the pods with the label that have ended. The scheduler's pod informer leaves them out, but a
// member that has succeeded counts for the minimum of its gang, unlike one that was deleted. Each label that makes a
// pod a member needs an informer, because a selector cannot have alternatives.
func NewEndedInformer(client clientset.Interface, label string) cache.SharedIndexInformer {
	ended := fields.AndSelectors(
		fields.OneTermNotEqualSelector("status.phase", string(v1.PodPending)),
		fields.OneTermNotEqualSelector("status.phase", string(v1.PodRunning)),
		fields.OneTermNotEqualSelector("status.phase", string(v1.PodUnknown)),
	).String()
	return coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, 0, cache.Indexers{},
		func(o *metav1.ListOptions) { o.FieldSelector, o.LabelSelector = ended, label })
}
