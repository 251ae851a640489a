package status

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/obstacle"
	"berth.dev/berth/pkg/gang/read"
)

func TestPodGroupStatus(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name  string
		set   func(v *gang.View)
		phase schedulingv1alpha1.PodGroupPhase
		// The reasons of the conditions, which are of one status each.
		quorum, scheduled, degraded string
		// past is what a scheduler that starts learns from the status.
		past gang.Past
	}{
		{"no pods yet", func(*gang.View) {}, schedulingv1alpha1.PodGroupPending,
			"False TooFewMembers", "False TooFewMembers", "False NoMembersLost", gang.NotStarted},
		{"all have finished", func(v *gang.View) { v.Count[gang.Succeeded] = 4 }, schedulingv1alpha1.PodGroupFinished,
			"True EnoughMembers", "True MinimumBound", "False NoMembersLost", gang.HadStarted},
		{"all pods exist and do not fit",
			func(v *gang.View) { v.Count[gang.Pending], v.Reason = 4, obstacle.Text("fits 2") },
			schedulingv1alpha1.PodGroupPreScheduling,
			"True EnoughMembers", "False Unschedulable", "False NoMembersLost", gang.NotStarted},
		{"being bound", func(v *gang.View) { v.Count[gang.Pending], v.Count[gang.Bound] = 2, 2 },
			schedulingv1alpha1.PodGroupScheduling,
			"True EnoughMembers", "False InProgress", "False NoMembersLost", gang.NotStarted},
		{"bound and starting", func(v *gang.View) { v.Count[gang.Bound], v.Running = 4, 3 },
			schedulingv1alpha1.PodGroupScheduled,
			"True EnoughMembers", "True MinimumBound", "False NoMembersLost", gang.HadStarted},
		{"the minimum has finished and a member is gated",
			func(v *gang.View) { v.Count[gang.Succeeded], v.Count[gang.Gated] = 4, 1 },
			schedulingv1alpha1.PodGroupRunning,
			"True EnoughMembers", "True MinimumBound", "False NoMembersLost", gang.HadStarted},
		{"a role is short", func(v *gang.View) { v.Minimum.Roles, v.Count[gang.Bound] = map[string]int{"leader": 1}, 4 },
			schedulingv1alpha1.PodGroupScheduling,
			"False TooFewMembers", "False TooFewMembers", "False NoMembersLost", gang.NotStarted},
		{"one has failed and was not replaced",
			func(v *gang.View) { v.Count[gang.Bound], v.Count[gang.Failed], v.Degraded = 3, 1, true },
			schedulingv1alpha1.PodGroupFailed,
			"False TooFewMembers", "False TooFewMembers", "True MembersLost", gang.HadStarted},
		{"scaled up", func(v *gang.View) { v.Count[gang.Bound], v.Count[gang.Pending], v.Started = 3, 1, true },
			schedulingv1alpha1.PodGroupScheduling,
			"True EnoughMembers", "False InProgress", "False MinimumRaised", gang.HadGrown},
	} {
		view := gang.View{Minimum: gang.Minimum{Total: 4}}
		tc.set(&view)
		pg := &schedulingv1alpha1.PodGroup{Spec: schedulingv1alpha1.PodGroupSpec{MinMember: 4}}
		if past := PastOf(pg); past != gang.NotStarted {
			t.Errorf("%s: a PodGroup without a status tells %d", tc.name, past)
		}
		pg.Status = wantedStatus(pg, &State{View: view}, now)
		got := map[string]string{}
		for _, c := range pg.Status.Conditions {
			got[c.Type] = string(c.Status) + " " + c.Reason
		}
		want := map[string]string{"Quorum": tc.quorum, "Scheduled": tc.scheduled, "Degraded": tc.degraded}
		if diff := cmp.Diff(want, got); diff != "" || pg.Status.Phase != tc.phase {
			t.Errorf("%s: phase %s, want %s; conditions (-want +got):\n%s", tc.name, pg.Status.Phase, tc.phase, diff)
		}
		if diff := cmp.Diff(pg.Status, wantedStatus(pg, &State{View: view}, now.Add(time.Hour))); diff != "" {
			t.Errorf("%s: the status changes although nothing happened (-first +second):\n%s", tc.name, diff)
		}
		if past := PastOf(pg); past != tc.past {
			t.Errorf("%s: it tells of the start %d, want %d", tc.name, past, tc.past)
		}
	}
}

func TestTheStatusOfManyRolesHasThoseThatLackMembers(t *testing.T) {
	t.Parallel()
	v := &gang.View{}
	v.Roles, v.Minimum.Roles = map[string]gang.ByState{}, map[string]int{}
	for i := range 100 {
		role := fmt.Sprintf("r%02d", i)
		v.Roles[role], v.Minimum.Roles[role] = gang.ByState{gang.Bound: 1}, 1
	}
	v.Roles["r70"], v.Minimum.Roles["r70"] = gang.ByState{gang.Pending: 1}, 2
	v.Roles["r98"], v.Minimum.Roles["r98"] = gang.ByState{gang.Pending: 1, gang.Bound: 1}, 0
	roles := roleStatus(v)
	var names []string
	for _, r := range roles {
		names = append(names, r.Name)
	}
	if len(names) != maxStatusRoles || !slices.IsSorted(names) || !slices.Contains(names, "r70") ||
		!slices.Contains(names, "r98") {
		t.Errorf("%d roles: %v", len(names), names)
	}
}

// TestPhasesOfVolcano are those by which Volcano's own scheduler goes: the numbers of members with a node and of those
// that have succeeded.
func TestPhasesOfVolcano(t *testing.T) {
	t.Parallel()
	type counts struct{ pending, bound, running, succeeded, failed int }
	for _, tc := range []struct {
		name     string
		of       counts
		degraded bool
		before   string
		want     string
	}{
		{"too few members, let in by Volcano", counts{pending: 1}, false, "Inqueue", "Inqueue"},
		{"being bound", counts{pending: 1, bound: 1}, false, "Pending", "Inqueue"},
		{"the minimum has succeeded and a further member has a node", counts{bound: 1, succeeded: 2}, false, "Completed",
			"Running"},
		{"a member is lost and the other runs", counts{bound: 1, running: 1}, true, "Running", "Unknown"},
		{"a member is lost and the other does not run", counts{bound: 1}, true, "Running", "Pending"},
		{"one has succeeded and one has failed", counts{succeeded: 1, failed: 1}, true, "Running", "Completed"},
		{"one has failed and the other has a node", counts{bound: 1, failed: 1}, true, "Running", "Running"},
		{"one has failed before the other has a node", counts{pending: 1, failed: 1}, false, "Pending", "Pending"},
	} {
		v := gang.View{Minimum: gang.Minimum{Total: 2}, Degraded: tc.degraded}
		v.Count[gang.Pending], v.Count[gang.Bound], v.Running = tc.of.pending, tc.of.bound, tc.of.running
		v.Count[gang.Succeeded], v.Count[gang.Failed] = tc.of.succeeded, tc.of.failed
		status := map[string]any{}
		if tc.before != "" {
			status["phase"] = tc.before
		}
		p := progressOf(&State{View: v})
		if p.fill(status, read.VolcanoGroup); status["phase"] != tc.want {
			t.Errorf("%s: phase %v, want %s", tc.name, status["phase"], tc.want)
		}
	}
}
