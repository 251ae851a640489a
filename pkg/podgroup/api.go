package podgroup

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
}

// api carries out writes. An object that has changed or gone meanwhile is left as it is: the informer reports it.
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
func (a api) patch(ctx context.Context, pg *schedulingv1alpha1.PodGroup, change map[string]any, subresource ...string) error {
	data, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("encoding a change of PodGroup %s: %w", klog.KObj(pg), err)
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err = a.GroupClient.Patch(apitypes.MergePatchType).Namespace(pg.Namespace).Resource("podgroups").Name(pg.Name).
		SubResource(subresource...).Body(data).Do(ctx).Error()
	if err != nil && !stale(err) {
		return fmt.Errorf("changing PodGroup %s: %w", klog.KObj(pg), err)
	}
	return nil
}

// remove deletes the PodGroup in the version that is known.
func (a api) remove(ctx context.Context, pg *schedulingv1alpha1.PodGroup) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := a.GroupClient.Delete().Namespace(pg.Namespace).Resource("podgroups").Name(pg.Name).
		Body(&metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pg.UID, ResourceVersion: &pg.ResourceVersion}}).Do(ctx).Error()
	if err != nil && !stale(err) {
		return fmt.Errorf("removing PodGroup %s: %w", klog.KObj(pg), err)
	}
	return nil
}

func (a api) patchPodStatus(ctx context.Context, pod *v1.Pod, change map[string]any) error {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": change})
	if err != nil {
		return fmt.Errorf("encoding the status of pod %s: %w", klog.KObj(pod), err)
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	_, err = a.Pods.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, apitypes.StrategicMergePatchType, data, metav1.PatchOptions{}, "status")
	if err != nil && !stale(err) {
		return fmt.Errorf("writing the status of pod %s: %w", klog.KObj(pod), err)
	}
	return nil
}

// stale reports whether a write failed because the object has changed or gone.
func stale(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }
