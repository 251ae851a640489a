package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/podview"
)

// wantedStatus returns the status of pg for the state of its gang. Conditions that do not change keep their times.
func wantedStatus(pg *schedulingv1alpha1.PodGroup, state *State, now time.Time) schedulingv1alpha1.PodGroupStatus {
	s, v := *pg.Status.DeepCopy(), &state.View
	minimum := minimumOf(v, pg)
	s.Scheduled = int32(v.Count[gang.Bound])
	s.Running = int32(v.Running)
	s.Succeeded = int32(v.Count[gang.Succeeded])
	s.Failed = int32(v.Count[gang.Failed])
	s.Roles = roleStatus(v)
	s.Phase = phaseOf(v, minimum)
	s.ReservedNodes, s.EstimatedStart = state.Reserved.Nodes, state.Reserved.Start
	if pod := state.liveExample(); s.OccupiedBy == "" && pod != nil {
		if owner := podview.ControllerOf(pod); owner != nil {
			s.OccupiedBy = pod.Namespace + "/" + owner.Name
		}
	}
	quorum := v.Existing() >= minimum.Total && v.Quorum()
	if quorum && s.ScheduleStartTime.IsZero() {
		s.ScheduleStartTime = metav1.NewTime(now.Truncate(time.Second))
	}
	set := func(kind string, holds bool, yes, no, message string) {
		c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: no, Message: message,
			ObservedGeneration: pg.Generation, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second))}
		if holds {
			c.Status, c.Reason = metav1.ConditionTrue, yes
		}
		meta.SetStatusCondition(&s.Conditions, c)
	}
	set(schedulingv1alpha1.PodGroupQuorum, quorum, "EnoughMembers", "TooFewMembers",
		existing(v, minimum))
	scheduled := v.Settled() >= minimum.Total && v.Met()
	reason, message := "InProgress", settled(v, minimum)
	switch {
	case scheduled:
	case v.Reason != nil:
		reason, message = "Unschedulable", v.Reason.String()
	case !quorum:
		reason, message = "TooFewMembers", existing(v, minimum)
	}
	set(schedulingv1alpha1.PodGroupScheduledCondition, scheduled, "MinimumBound", reason, message)
	reason, message = "NoMembersLost", ""
	switch {
	case v.Degraded:
		message = lost(v, minimum)
	case v.Started && !scheduled:
		reason = schedulingv1alpha1.PodGroupMinimumRaised
		message = fmt.Sprintf("no member was lost; the minimum was raised to %s", minimum)
	}
	set(schedulingv1alpha1.PodGroupDegraded, v.Degraded, "MembersLost", reason, message)
	// Most groups never have these conditions.
	reserved := state.Reserved.Message
	if reserved != "" || meta.FindStatusCondition(s.Conditions, schedulingv1alpha1.PodGroupReserved) != nil {
		set(schedulingv1alpha1.PodGroupReserved, reserved != "", "NodesReserved", "NotReserved", reserved)
	}
	late, reason, message := state.judgeDeadline(pg, now)
	if had := meta.FindStatusCondition(s.Conditions, deadlineMissed); late || had != nil && reason != "" {
		set(deadlineMissed, late, reason, reason, message)
	}
	return s
}

// lost is the message about a gang that has started and lost members.
func lost(v *gang.View, minimum gang.Minimum) string {
	had := v.Reached
	if had.Total == 0 {
		had = minimum
	}
	if short := had.Groups().Short(v.SettledIn); short != "" && v.Settled() >= had.Total {
		return "the gang has " + short
	}
	return fmt.Sprintf("%d of the %s that started %s left", v.Settled(), ofMembers(had),
		plural.Choose(v.Settled(), "is", "are"))
}

// minimumOf is the minimum of the gang, or that of its PodGroup if the ledger does not know one yet.
func minimumOf(v *gang.View, pg *schedulingv1alpha1.PodGroup) gang.Minimum {
	minimum := v.Minimum
	if minimum.Total == 0 {
		minimum.Total = max(int(pg.Spec.MinMember), 1)
	}
	return minimum
}

// existing is the message about how many members exist, or why there will never be enough.
func existing(v *gang.View, minimum gang.Minimum) string {
	if v.Note != "" {
		return v.Note
	}
	for _, name := range slices.Sorted(maps.Keys(minimum.Roles)) {
		if need, have := minimum.Roles[name], v.Roles[name].Existing(); have < need {
			return fmt.Sprintf("%d of %s with role %s %s", have, plural.Of(need, "member"), name,
				plural.Choose(need, "exists", "exist"))
		}
	}
	if n := v.Existing(); n > minimum.Total {
		return fmt.Sprintf("%d members exist; the minimum is %s", n, minimum)
	}
	return fmt.Sprintf("%d of %s %s", v.Existing(), ofMembers(minimum), plural.Choose(minimum.Total, "exists", "exist"))
}

// settled is the message about how many members are bound or have succeeded.
func settled(v *gang.View, minimum gang.Minimum) string {
	if n := v.Settled(); n > minimum.Total {
		return fmt.Sprintf("%d members are bound or have succeeded; the minimum is %s", n, minimum)
	}
	return fmt.Sprintf("%d of %s %s bound or %s succeeded", v.Settled(), ofMembers(minimum),
		plural.Choose(minimum.Total, "is", "are"), plural.Choose(minimum.Total, "has", "have"))
}

// ofMembers is the minimum with what it counts.
func ofMembers(minimum gang.Minimum) string {
	return minimum.String() + " " + plural.Noun(minimum.Total, "member")
}

// maxStatusRoles bounds the status of a gang with many groups, which is written whenever members start.
const maxStatusRoles = 64

// roleStatus counts the members by role. Of more roles than maxStatusRoles it keeps those that lack members, then those
// that lack nodes.
func roleStatus(v *gang.View) []schedulingv1alpha1.PodGroupRole {
	var roles []schedulingv1alpha1.PodGroupRole
	needed := v.Minimum.Roles
	names := slices.Concat(slices.Collect(maps.Keys(needed)), slices.Collect(maps.Keys(v.Roles)))
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > maxStatusRoles {
		lacking := func(name string) int {
			r := v.Roles[name]
			switch {
			case r.Existing() < needed[name]:
				return 0
			case r.Settled() < r.Existing():
				return 1
			}
			return 2
		}
		slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(lacking(a), lacking(b)) })
		names = slices.Sorted(slices.Values(names[:maxStatusRoles]))
	}
	for _, name := range names {
		r := v.Roles[name]
		roles = append(roles, schedulingv1alpha1.PodGroupRole{Name: name, MinMember: int32(needed[name]),
			Existing: int32(r.Existing()), Scheduled: int32(r.Settled())})
	}
	return roles
}

// PastOf returns whether the gang had started when the status was written.
func PastOf(pg *schedulingv1alpha1.PodGroup) gang.Past {
	degraded := meta.FindStatusCondition(pg.Status.Conditions, schedulingv1alpha1.PodGroupDegraded)
	switch {
	case meta.IsStatusConditionTrue(pg.Status.Conditions, schedulingv1alpha1.PodGroupScheduledCondition):
		return gang.HadStarted
	case degraded == nil:
		return gang.NotStarted
	case degraded.Status == metav1.ConditionTrue:
		return gang.HadStarted
	case degraded.Reason == schedulingv1alpha1.PodGroupMinimumRaised:
		return gang.HadGrown
	}
	return gang.NotStarted
}

func phaseOf(v *gang.View, minimum gang.Minimum) schedulingv1alpha1.PodGroupPhase {
	switch {
	case v.Count[gang.Succeeded] >= minimum.Total && v.Existing()+v.Count[gang.Gated] == v.Count[gang.Succeeded]:
		return schedulingv1alpha1.PodGroupFinished
	case v.Count[gang.Failed] > 0 && v.Existing() < minimum.Total:
		return schedulingv1alpha1.PodGroupFailed
	case v.Running+v.Count[gang.Succeeded] >= minimum.Total && v.Met():
		return schedulingv1alpha1.PodGroupRunning
	case v.Settled() >= minimum.Total && v.Met():
		return schedulingv1alpha1.PodGroupScheduled
	case v.Count[gang.Bound]+v.Holding > 0:
		return schedulingv1alpha1.PodGroupScheduling
	case v.Existing() >= minimum.Total && v.Quorum():
		return schedulingv1alpha1.PodGroupPreScheduling
	default:
		return schedulingv1alpha1.PodGroupPending
	}
}

// withoutMessages is the status without the messages of its conditions.
func withoutMessages(s schedulingv1alpha1.PodGroupStatus) schedulingv1alpha1.PodGroupStatus {
	s.Conditions = slices.Clone(s.Conditions)
	for i := range s.Conditions {
		s.Conditions[i].Message = ""
	}
	return s
}

// explicit is the status with zeros, so that a merge patch replaces old values.
func explicit(s schedulingv1alpha1.PodGroupStatus) map[string]any {
	m := map[string]any{"phase": s.Phase, "scheduled": s.Scheduled, "running": s.Running, "succeeded": s.Succeeded,
		"failed": s.Failed, "roles": s.Roles, "conditions": s.Conditions, "reservedNodes": s.ReservedNodes,
		"estimatedStart": s.EstimatedStart}
	if s.OccupiedBy != "" {
		m["occupiedBy"] = s.OccupiedBy
	}
	if !s.ScheduleStartTime.IsZero() {
		m["scheduleStartTime"] = s.ScheduleStartTime
	}
	return m
}
