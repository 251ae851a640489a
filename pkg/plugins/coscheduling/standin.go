package coscheduling

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
)

// keepStandIn makes, corrects or removes the PodGroup that stands in for a gang whose members carry its minimum in labels.
// A PodGroup of anybody else's is left alone, and every write names the version that it was decided on, so that a user who
// is faster wins. It reports whether there is a PodGroup to write the status of.
func (s *statusWriter) keepStandIn(ctx context.Context, id gang.ID, v gang.View, pg *schedulingv1alpha1.PodGroup, now time.Time) (bool, error) {
	switch {
	case pg == nil && v.Undeclared > 0:
		// Its status is written when the informer tells of it.
		return false, s.createStandIn(ctx, id, v, now)
	case pg == nil:
		return false, nil
	case !isStandIn(pg) || pg.DeletionTimestamp != nil:
		return true, nil
	case v.Undeclared == 0 && s.unheard(id):
		// It holds what only it knows: whether the gang has started, and what users have written on it.
		return false, nil
	case v.Undeclared == 0:
		return false, s.groups.remove(ctx, pg)
	default:
		return true, s.correctStandIn(ctx, pg, standInFor(id, v.Undeclared, s.members(id)))
	}
}

// members returns the gang's pods, the oldest first.
func (s *statusWriter) members(id gang.ID) []*v1.Pod {
	var pods []*v1.Pod
	for _, ref := range s.ledger.Members(id) {
		if pod := s.pods.any(ref); pod != nil {
			pods = append(pods, pod)
		}
	}
	return pods
}

func (s *statusWriter) correctStandIn(ctx context.Context, pg, want *schedulingv1alpha1.PodGroup) error {
	if len(want.OwnerReferences) == 0 {
		want.OwnerReferences = pg.OwnerReferences
	}
	if pg.Spec.MinMember == want.Spec.MinMember && equality.Semantic.DeepEqual(pg.OwnerReferences, want.OwnerReferences) {
		return nil
	}
	return s.groups.patch(ctx, pg, map[string]any{
		"metadata": map[string]any{"uid": pg.UID, "resourceVersion": pg.ResourceVersion,
			"ownerReferences": want.OwnerReferences, "annotations": want.Annotations},
		"spec": map[string]any{"minMember": want.Spec.MinMember},
	})
}
