package coscheduling

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

// maxStandInOwners bounds the size of a stand-in whose owners are its members. It is kept as long as any of its owners
// exists, and those that are gone are replaced.
const maxStandInOwners = 32

// standInFor returns the PodGroup that Berth makes for a gang whose members carry its minimum in labels. It belongs to what
// controls all members, and to the members themselves if there is no such thing, so that it is collected with the last.
func standInFor(id gang.ID, minMember int, members []*v1.Pod) *schedulingv1alpha1.PodGroup {
	return &schedulingv1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: id.Namespace, Name: id.Name,
			Annotations:     map[string]string{wellknown.StandInKey: strconv.Itoa(minMember)},
			OwnerReferences: standInOwners(members)},
		Spec: schedulingv1alpha1.PodGroupSpec{MinMember: int32(minMember)},
	}
}

// isStandIn reports whether Berth made the PodGroup and nobody has made it their own since by saying what it asks for.
func isStandIn(pg *schedulingv1alpha1.PodGroup) bool {
	made, marked := pg.Annotations[wellknown.StandInKey]
	return marked && made == strconv.Itoa(int(pg.Spec.MinMember)) && len(pg.Spec.MinResources) == 0 && pg.Spec.ScheduleTimeoutSeconds == nil
}

func standInOwners(members []*v1.Pod) []metav1.OwnerReference {
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
	owners := make([]metav1.OwnerReference, min(len(members), maxStandInOwners))
	for i := range owners {
		owners[i] = metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: members[i].Name, UID: members[i].UID}
	}
	return owners
}
