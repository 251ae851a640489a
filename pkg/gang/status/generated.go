package status

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

const (
	// maxOwners bounds the owners of a generated PodGroup that belongs to its members. It exists as long as one of them,
	// and owners that are gone are replaced.
	maxOwners = 32
	// refusedPause is the pause after the API server refused a PodGroup. It doubles up to refusedPauseMost.
	refusedPause, refusedPauseMost = 5 * time.Second, 5 * time.Minute
)

// keep creates, corrects or removes the PodGroup that is generated for a gang whose minimum labels or an owner declare.
// PodGroups that users made or edited are left alone, and every write has the known resource version as a precondition.
// It returns whether there is a PodGroup with a status to write, and after what time to try again.
func (c *Controller) keep(ctx context.Context, id gang.ID, s *State, pg *schedulingv1alpha1.PodGroup,
	r *record) (shown bool, again time.Duration, err error) {
	switch {
	case pg == nil && s.Undeclared > 0:
		again, err = c.create(ctx, id, s, r)
		return false, again, err
	case pg == nil:
		return false, 0, nil
	case !read.Generated(pg) || pg.DeletionTimestamp != nil:
		return true, 0, nil
	case s.Undeclared == 0 && s.OwnerUnread:
		// It keeps whether the gang has started, and what users have written on it.
		return false, 0, nil
	case s.Undeclared == 0:
		return false, 0, c.api.remove(ctx, pg)
	default:
		return true, 0, c.correct(ctx, pg, generatedPodGroup(id, s.Undeclared, s.Members))
	}
}

// create creates the PodGroup of the gang, and returns after what time to try again.
func (c *Controller) create(ctx context.Context, id gang.ID, s *State, r *record) (again time.Duration, err error) {
	pg := generatedPodGroup(id, s.Undeclared, s.Members)
	if len(pg.OwnerReferences) == 0 {
		return 0, nil
	}
	return c.handleCreateResult(ctx, id, s, r, c.api.create(ctx, pg))
}

// handleCreateResult returns after what time to try again after a PodGroup was created, or not.
func (c *Controller) handleCreateResult(ctx context.Context, id gang.ID, s *State, r *record,
	err error) (again time.Duration, _ error) {
	var why string
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		r.refused = 0
		return 0, nil
	case apierrors.HasStatusCause(err, v1.NamespaceTerminatingCause), namespaceGone(err):
		return 0, nil
	case apierrors.ReasonForError(err) != "":
		// A name that no object may have, a quota, a missing right, a webhook, or a cluster that does not serve PodGroups.
		why = err.Error()
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		// A webhook that does not answer delays each request.
		why = fmt.Sprintf("the API server, or a webhook that it asks, gave no answer within %s", writeTimeout)
	default:
		return 0, fmt.Errorf("creating PodGroup %s: %w", id, err)
	}
	if r.refused == 0 {
		c.reportNoPodGroup(ctx, id, s, why)
	}
	r.refused = min(max(2*r.refused, refusedPause), refusedPauseMost)
	return r.refused, nil
}

// reportNoPodGroup records on the oldest member why the gang has no PodGroup.
func (c *Controller) reportNoPodGroup(ctx context.Context, id gang.ID, s *State, why string) {
	klog.FromContext(ctx).Info("A gang is scheduled without a PodGroup", "gang", id, "reason", why)
	if pod := s.example(); pod != nil {
		c.recorder.warn(ctx, pod, "NoPodGroup", "the gang is scheduled, but has no PodGroup to show its state: "+why)
	}
}

// namespaceGone reports whether the namespace, and not the kind, does not exist.
func namespaceGone(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && apierrors.IsNotFound(err) && status.Status().Details != nil &&
		status.Status().Details.Kind == "namespaces"
}

func (c *Controller) correct(ctx context.Context, pg, want *schedulingv1alpha1.PodGroup) error {
	if len(want.OwnerReferences) == 0 {
		want.OwnerReferences = pg.OwnerReferences
	}
	if pg.Spec.MinMember == want.Spec.MinMember && equality.Semantic.DeepEqual(pg.OwnerReferences, want.OwnerReferences) {
		return nil
	}
	return c.api.patch(ctx, pg, map[string]any{
		"metadata": map[string]any{"uid": pg.UID, "resourceVersion": pg.ResourceVersion,
			"ownerReferences": want.OwnerReferences, "annotations": want.Annotations},
		"spec": map[string]any{"minMember": want.Spec.MinMember},
	})
}

// generatedPodGroup returns the PodGroup for a gang whose minimum labels or an owner declare. Its owner is the
// controller of all members or, if there is none, the members, so that it is deleted with the last.
func generatedPodGroup(id gang.ID, minMember int, members []*v1.Pod) *schedulingv1alpha1.PodGroup {
	return &schedulingv1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: id.Namespace, Name: id.Name,
			Annotations:     map[string]string{wellknown.StandInKey: strconv.Itoa(minMember)},
			OwnerReferences: generatedOwners(members)},
		Spec: schedulingv1alpha1.PodGroupSpec{MinMember: int32(minMember)},
	}
}

func generatedOwners(members []*v1.Pod) []metav1.OwnerReference {
	var shared *metav1.OwnerReference
	for i, pod := range members {
		controller := podview.ControllerOf(pod)
		if controller == nil || (i > 0 && controller.UID != shared.UID) {
			shared = nil
			break
		}
		shared = controller
	}
	if shared != nil {
		return []metav1.OwnerReference{{APIVersion: shared.APIVersion, Kind: shared.Kind, Name: shared.Name, UID: shared.UID}}
	}
	owners := make([]metav1.OwnerReference, min(len(members), maxOwners))
	for i := range owners {
		owners[i] = metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: members[i].Name, UID: members[i].UID}
	}
	return owners
}
