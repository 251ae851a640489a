package podgroup

import (
	"context"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

// maxOwners bounds the size of a generated PodGroup whose owners are its members. It is kept as long as any of its
// owners exists, and those that are gone are replaced.
const maxOwners = 32

// generator creates the PodGroups of gangs that have none.
type generator struct {
	api      api
	recorder recorder
	refusals refusals
}

// keep creates, corrects or removes the PodGroup that is generated for a gang whose minimum labels or an owner
// declare. A PodGroup of other authors is left alone, and every write names the version that it was decided on, so that
// a user who is faster wins. It reports whether there is a PodGroup to write the status of, and after what time to try
// again.
func (g *generator) keep(ctx context.Context, id gang.ID, s *State, pg *schedulingv1alpha1.PodGroup, r *record,
	now time.Time) (shown bool, again time.Duration, err error) {
	switch {
	case pg == nil && s.Undeclared > 0:
		again, err = g.create(ctx, id, s, r, now)
		return false, again, err
	case pg == nil:
		return false, 0, nil
	case !Generated(pg) || pg.DeletionTimestamp != nil:
		return true, 0, nil
	case s.Undeclared == 0 && s.OwnerUnread:
		// Only it holds whether the gang has started, and what users have written on it.
		return false, 0, nil
	case s.Undeclared == 0:
		return false, 0, g.api.remove(ctx, pg)
	default:
		return true, 0, g.correct(ctx, pg, generatedPodGroup(id, s.Undeclared, s.Members))
	}
}

func (g *generator) correct(ctx context.Context, pg, want *schedulingv1alpha1.PodGroup) error {
	if len(want.OwnerReferences) == 0 {
		want.OwnerReferences = pg.OwnerReferences
	}
	if pg.Spec.MinMember == want.Spec.MinMember && equality.Semantic.DeepEqual(pg.OwnerReferences, want.OwnerReferences) {
		return nil
	}
	return g.api.patch(ctx, pg, map[string]any{
		"metadata": map[string]any{"uid": pg.UID, "resourceVersion": pg.ResourceVersion,
			"ownerReferences": want.OwnerReferences, "annotations": want.Annotations},
		"spec": map[string]any{"minMember": want.Spec.MinMember},
	})
}

// generatedPodGroup returns the PodGroup for a gang whose minimum labels or an owner declare. It belongs to what
// controls all members, and to the members themselves if there is no such object, so that it is collected with the
// last.
func generatedPodGroup(id gang.ID, minMember int, members []*v1.Pod) *schedulingv1alpha1.PodGroup {
	return &schedulingv1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: id.Namespace, Name: id.Name,
			Annotations:     map[string]string{wellknown.StandInKey: strconv.Itoa(minMember)},
			OwnerReferences: generatedOwners(members)},
		Spec: schedulingv1alpha1.PodGroupSpec{MinMember: int32(minMember)},
	}
}

// Generated reports whether the controller created the PodGroup and no user has edited its spec since.
func Generated(pg *schedulingv1alpha1.PodGroup) bool {
	minimum, marked := pg.Annotations[wellknown.StandInKey]
	return marked && minimum == strconv.Itoa(int(pg.Spec.MinMember)) && len(pg.Spec.MinResources) == 0 &&
		pg.Spec.ScheduleTimeoutSeconds == nil
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
