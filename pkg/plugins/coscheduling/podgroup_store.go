package coscheduling

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
)

// podGroups reads PodGroups from the informer and writes them to the API server.
type podGroups struct {
	client *podGroupClient
	store  cache.Store
}

// get returns the PodGroup of the gang, or nil.
func (g *podGroups) get(id gang.ID) *schedulingv1alpha1.PodGroup {
	obj, exists, err := g.store.GetByKey(id.String())
	if err != nil || !exists {
		return nil
	}
	return obj.(*schedulingv1alpha1.PodGroup)
}

// all returns the gangs that have a PodGroup.
func (g *podGroups) all() []gang.ID {
	var ids []gang.ID
	for _, obj := range g.store.List() {
		pg := obj.(*schedulingv1alpha1.PodGroup)
		ids = append(ids, gang.ID{Namespace: pg.Namespace, Name: pg.Name})
	}
	return ids
}

// create makes a PodGroup.
func (g *podGroups) create(ctx context.Context, pg *schedulingv1alpha1.PodGroup) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return g.client.rest.Post().Namespace(pg.Namespace).Resource("podgroups").Body(pg).Do(ctx).Error()
}

// patch changes a PodGroup, or its status if subresource says so. One that has changed or gone meanwhile is left as it is: the
// informer will tell of it.
func (g *podGroups) patch(ctx context.Context, pg *schedulingv1alpha1.PodGroup, change map[string]any, subresource ...string) error {
	data, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("encoding a change of PodGroup %s/%s: %w", pg.Namespace, pg.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err = g.client.rest.Patch(apitypes.MergePatchType).Namespace(pg.Namespace).Resource("podgroups").Name(pg.Name).
		SubResource(subresource...).Body(data).Do(ctx).Error()
	if err != nil && !stale(err) {
		return fmt.Errorf("changing PodGroup %s/%s: %w", pg.Namespace, pg.Name, err)
	}
	return nil
}

// remove deletes the PodGroup in the version that is known.
func (g *podGroups) remove(ctx context.Context, pg *schedulingv1alpha1.PodGroup) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := g.client.rest.Delete().Namespace(pg.Namespace).Resource("podgroups").Name(pg.Name).
		Body(&metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pg.UID, ResourceVersion: &pg.ResourceVersion}}).Do(ctx).Error()
	if err != nil && !stale(err) {
		return fmt.Errorf("removing PodGroup %s/%s: %w", pg.Namespace, pg.Name, err)
	}
	return nil
}

// stale reports whether a write failed because the object has changed or gone.
func stale(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }
