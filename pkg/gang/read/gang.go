package read

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read/numbering"
	"berth.dev/berth/pkg/gang/work"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

// Keys of gangs that members carry themselves, the older form without a PodGroup.
const (
	gangNameLabel     = "pod-group.scheduling.sigs.k8s.io/name"
	MinAvailableLabel = "pod-group.scheduling.sigs.k8s.io/min-available"
)

// Of returns the gang that the pod itself declares, with its minimum if the pod carries it, else 0. A bad value is an
// error. OwnerPolicy.GangOf also knows the gangs of controllers whose pods declare nothing.
func Of(pod *v1.Pod) (id gang.ID, minimum int, err error) {
	m, err := (*OwnerPolicy)(nil).GangOf(pod)
	return m.ID, m.Minimum, err
}

// labelledGang reads the labels that name a gang: that of a PodGroup, then the older form without a PodGroup.
func labelledGang(pod *v1.Pod) (Membership, error) {
	if name := pod.Labels[schedulingv1alpha1.PodGroupLabel]; name != "" {
		return Membership{ID: gang.ID{Namespace: pod.Namespace, Name: name}}, nil
	}
	name, named := pod.Labels[gangNameLabel]
	if !named {
		return Membership{}, nil
	}
	if name == "" {
		return Membership{}, &wellknown.BadValue{Object: "pod", Kind: "label", Key: gangNameLabel, Value: name,
			Allowed: "the name of a group"}
	}
	minAvailable, given := pod.Labels[MinAvailableLabel]
	minMember, ok := parseMinimum(minAvailable)
	if !ok {
		return Membership{}, &wellknown.BadValue{Object: "pod", Kind: "label", Key: MinAvailableLabel, Value: minAvailable,
			Missing: !given,
			Allowed: allowedMinimum}
	}
	return Membership{ID: gang.ID{Namespace: pod.Namespace, Name: name}, Minimum: minMember}, nil
}

// parseMinimum reads the minimum of a gang from a label or an annotation.
func parseMinimum(text string) (int, bool) {
	n, err := strconv.ParseInt(text, 10, 32)
	return int(n), err == nil && n >= 1 && n <= maxMinMember
}

// Labels returns the labels; either of them makes a pod the member of a gang.
func Labels() []string { return []string{schedulingv1alpha1.PodGroupLabel, gangNameLabel} }

// maxTimeout is the longest that the framework lets a pod wait in Permit.
const maxTimeout = 15 * time.Minute

// maxMinMember is the largest minimum; the CRD has the same bound.
const maxMinMember = numbering.MaxMembers

var allowedMinimum = fmt.Sprintf("a whole number from 1 to %d", maxMinMember)

// Spec reads a PodGroup. timeout replaces scheduleTimeoutSeconds if that is absent or 0, as in scheduler-plugins. An
// error is a BadValue.
func Spec(pg *schedulingv1alpha1.PodGroup, timeout time.Duration) (gang.Spec, error) {
	roles, err := minMembersByRole(pg)
	if err != nil {
		return gang.Spec{}, err
	}
	if bad := Misstated(pg); bad != nil {
		return gang.Spec{}, bad
	}
	groups, err := groupsOf(pg)
	if err != nil {
		return gang.Spec{}, err
	}
	minimum := gang.Minimum{Total: max(int(pg.Spec.MinMember), 1), Roles: roles, Tree: groups}
	if groups != nil {
		groups.Roles = maps.Clone(roles)
		minimum.Roles = map[string]int{}
		groups.Always(minimum.Roles)
	}
	minimum.Total = minimum.Members()
	if minimum.Total > maxMinMember {
		return gang.Spec{}, &wellknown.BadValue{Object: "PodGroup " + pg.Name, Kind: "annotation", Key: wellknown.GroupsKey,
			Value: fmt.Sprint(minimum.Total, " pods"), Allowed: allowedMinimum}
	}
	s := gang.Spec{
		Minimum:    minimum,
		Created:    pg.CreationTimestamp.Time,
		UID:        gang.UID(pg.UID),
		Timeout:    timeout,
		Generation: pg.Generation,
		Placement:  Placement(pg) + fmt.Sprint(podview.Amounts(pg.Spec.MinResources)),
	}
	if t := pg.Spec.ScheduleTimeoutSeconds; t != nil && *t > 0 {
		s.Timeout = min(time.Duration(*t)*time.Second, maxTimeout)
	}
	return s, nil
}

// Misstated returns the first bad value of a pod or a PodGroup about backfill, its run time or its work, nil if there
// is none.
func Misstated(of metav1.Object) *wellknown.BadValue {
	_, backfill := Backfill(of)
	_, run := work.DeclaredRunTime(of)
	_, lost := work.Declared(of)
	return cmp.Or(backfill, run, lost)
}

// Generated reports whether the controller created the PodGroup and no user has edited its spec since.
func Generated(pg *schedulingv1alpha1.PodGroup) bool {
	minimum, marked := pg.Annotations[wellknown.StandInKey]
	return marked && minimum == strconv.Itoa(int(pg.Spec.MinMember)) && len(pg.Spec.MinResources) == 0 &&
		pg.Spec.ScheduleTimeoutSeconds == nil
}

// Placement is equal for PodGroups, which may be nil, whose annotations about placement are equal. These annotations
// also count in generated PodGroups, where they are no edit of the spec.
func Placement(pg *schedulingv1alpha1.PodGroup) string {
	annotations := map[string]string{}
	pg = cmp.Or(pg, &schedulingv1alpha1.PodGroup{})
	for _, key := range []string{wellknown.TopologyRequiredKey, wellknown.TopologyPreferredKey,
		wellknown.BackfillKey, wellknown.SegmentSizeKey, wellknown.SegmentTopologyKey, wellknown.GroupsKey,
		wellknown.GroupLabelKey} {
		// An empty value differs from none: it is a bad value.
		if value, found := pg.Annotations[key]; found {
			annotations[key] = value
		}
	}
	return fmt.Sprintf("%q", annotations)
}

// Member reads a pod as a member of its gang. ours is set if this process schedules it.
func Member(pod *v1.Pod, of Membership, pg *schedulingv1alpha1.PodGroup, ours bool) gang.Member {
	m := gang.Member{
		Ref:      RefOf(pod),
		Priority: corev1helpers.PodPriority(pod),
		Created:  pod.CreationTimestamp.Time,
		Node:     pod.Spec.NodeName,
		Ours:     ours,
		Role:     Role(pod, pg),
		Minimum:  of.Minimum,
	}
	switch {
	case pod.Status.Phase == v1.PodSucceeded:
		m.State = gang.Succeeded
	case pod.Status.Phase == v1.PodFailed:
		m.State = gang.Failed
	case pod.DeletionTimestamp != nil:
		m.State = gang.Terminating
	case pod.Spec.NodeName != "":
		m.State = gang.Bound
		m.Running = pod.Status.Phase == v1.PodRunning
	case len(pod.Spec.SchedulingGates) > 0:
		m.State = gang.Gated
	default:
		m.State = gang.Pending
		m.Class = numbering.PlacementClass(pod)
	}
	return m
}

// backfillAllowed is the one value of BackfillKey.
const backfillAllowed = "allow"

// Backfill reads whether a pod, or a PodGroup for its pods, may run in capacity that is kept for a gang.
func Backfill(of metav1.Object) (bool, *wellknown.BadValue) {
	value, ok := of.GetAnnotations()[wellknown.BackfillKey]
	if ok && value != backfillAllowed {
		return false, podview.BadAnnotation(of, wellknown.BackfillKey, `"`+backfillAllowed+`"`)
	}
	return ok, nil
}

// MayBackfill reports whether the pod may run in capacity that is kept for a gang, by its annotation or that of its
// PodGroup, which may be nil. A bad value allows nothing.
func MayBackfill(pg *schedulingv1alpha1.PodGroup, pod *v1.Pod) bool {
	may, _ := Backfill(pod)
	if !may && pg != nil {
		may, _ = Backfill(pg)
	}
	return may
}

// Late is the message about the deadline that the gang misses, empty if it misses none.
func Late(pg *schedulingv1alpha1.PodGroup) string {
	c := meta.FindStatusCondition(pg.Status.Conditions, schedulingv1alpha1.PodGroupDeadlineMissed)
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	return c.Message
}

// RefOf names the pod as the ledger of gangs does.
func RefOf(pod *v1.Pod) gang.Ref {
	return gang.Ref{UID: gang.UID(pod.UID), Namespace: pod.Namespace, Name: pod.Name}
}
