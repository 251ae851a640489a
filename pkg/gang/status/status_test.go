package status

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/obstacle"
	"berth.dev/berth/pkg/gang/read"
)

func TestPodGroupStatus(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	view := func(set func(v *gang.View)) gang.View {
		v := gang.View{Minimum: gang.Minimum{Total: 4}}
		set(&v)
		return v
	}
	for _, tc := range []struct {
		name  string
		view  gang.View
		phase schedulingv1alpha1.PodGroupPhase
		want  map[string]string
	}{
		{"no pods yet", view(func(*gang.View) {}), schedulingv1alpha1.PodGroupPending,
			map[string]string{"Quorum": "False TooFewMembers", "Scheduled": "False TooFewMembers",
				"Degraded": "False NoMembersLost"}},
		{"all pods exist and do not fit",
			view(func(v *gang.View) { v.Count[gang.Pending], v.Reason = 4, obstacle.Told("fits 2") }),
			schedulingv1alpha1.PodGroupPreScheduling,
			map[string]string{"Quorum": "True EnoughMembers", "Scheduled": "False Unschedulable",
				"Degraded": "False NoMembersLost"}},
		{"being bound", view(func(v *gang.View) { v.Count[gang.Pending], v.Count[gang.Bound] = 2, 2 }),
			schedulingv1alpha1.PodGroupScheduling,
			map[string]string{"Quorum": "True EnoughMembers", "Scheduled": "False InProgress",
				"Degraded": "False NoMembersLost"}},
		{"bound and starting", view(func(v *gang.View) { v.Count[gang.Bound], v.Running = 4, 3 }),
			schedulingv1alpha1.PodGroupScheduled,
			map[string]string{"Quorum": "True EnoughMembers", "Scheduled": "True MinimumBound",
				"Degraded": "False NoMembersLost"}},
		{"half has finished and half runs",
			view(func(v *gang.View) { v.Count[gang.Bound], v.Running, v.Count[gang.Succeeded] = 2, 2, 2 }),
			schedulingv1alpha1.PodGroupRunning,
			map[string]string{"Quorum": "True EnoughMembers", "Scheduled": "True MinimumBound",
				"Degraded": "False NoMembersLost"}},
		{"all have finished", view(func(v *gang.View) { v.Count[gang.Succeeded] = 4 }), schedulingv1alpha1.PodGroupFinished,
			map[string]string{"Quorum": "True EnoughMembers", "Scheduled": "True MinimumBound",
				"Degraded": "False NoMembersLost"}},
		{"the minimum has finished and a member runs",
			view(func(v *gang.View) { v.Count[gang.Succeeded], v.Count[gang.Bound], v.Running = 4, 1, 1 }),
			schedulingv1alpha1.PodGroupRunning,
			map[string]string{"Quorum": "True EnoughMembers", "Scheduled": "True MinimumBound",
				"Degraded": "False NoMembersLost"}},
		{"the minimum has finished and a member waits",
			view(func(v *gang.View) { v.Count[gang.Succeeded], v.Count[gang.Pending] = 4, 1 }),
			schedulingv1alpha1.PodGroupRunning,
			map[string]string{"Quorum": "True EnoughMembers", "Scheduled": "True MinimumBound",
				"Degraded": "False NoMembersLost"}},
		{"the minimum has finished and a member is gated",
			view(func(v *gang.View) { v.Count[gang.Succeeded], v.Count[gang.Gated] = 4, 1 }),
			schedulingv1alpha1.PodGroupRunning,
			map[string]string{"Quorum": "True EnoughMembers", "Scheduled": "True MinimumBound",
				"Degraded": "False NoMembersLost"}},
		{"a role is short", view(func(v *gang.View) {
			v.Minimum.Roles, v.Count[gang.Bound] = map[string]int{"leader": 1}, 4
		}), schedulingv1alpha1.PodGroupScheduling,
			map[string]string{"Quorum": "False TooFewMembers", "Scheduled": "False TooFewMembers",
				"Degraded": "False NoMembersLost"}},
		{"one has failed and was not replaced",
			view(func(v *gang.View) { v.Count[gang.Bound], v.Count[gang.Failed], v.Degraded = 3, 1, true }),
			schedulingv1alpha1.PodGroupFailed,
			map[string]string{"Quorum": "False TooFewMembers", "Scheduled": "False TooFewMembers",
				"Degraded": "True MembersLost"}},
		{"scaled up", view(func(v *gang.View) { v.Count[gang.Bound], v.Count[gang.Pending], v.Started = 3, 1, true }),
			schedulingv1alpha1.PodGroupScheduling,
			map[string]string{"Quorum": "True EnoughMembers", "Scheduled": "False InProgress",
				"Degraded": "False MinimumRaised"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			pg := &schedulingv1alpha1.PodGroup{Spec: schedulingv1alpha1.PodGroupSpec{MinMember: 4}}
			s := wantedStatus(pg, &State{View: tc.view}, now)
			got := map[string]string{}
			for _, c := range s.Conditions {
				got[c.Type] = string(c.Status) + " " + c.Reason
			}
			if s.Phase != tc.phase {
				t.Errorf("phase %s, want %s", s.Phase, tc.phase)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
			pg.Status = s
			if diff := cmp.Diff(s, wantedStatus(pg, &State{View: tc.view}, now.Add(time.Hour))); diff != "" {
				t.Errorf("the status changes although nothing happened (-first +second):\n%s", diff)
			}
		})
	}
}

// A scheduler that starts learns from the status that an earlier one has written whether the gang had started.
func TestWhatTheStatusTellsOfTheStart(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		set  func(v *gang.View)
		want gang.Past
	}{
		{"not started", func(v *gang.View) { v.Count[gang.Bound], v.Count[gang.Pending] = 2, 2 }, gang.NotStarted},
		{"started", func(v *gang.View) { v.Count[gang.Bound], v.Started = 4, true }, gang.HadStarted},
		{"degraded", func(v *gang.View) { v.Count[gang.Bound], v.Started, v.Degraded = 2, true, true }, gang.HadStarted},
		{"scaled up", func(v *gang.View) { v.Count[gang.Bound], v.Started = 2, true }, gang.HadGrown},
	} {
		v := gang.View{Minimum: gang.Minimum{Total: 4}}
		tc.set(&v)
		pg := &schedulingv1alpha1.PodGroup{Spec: schedulingv1alpha1.PodGroupSpec{MinMember: 4}}
		if past := PastOf(pg); past != gang.NotStarted {
			t.Errorf("a PodGroup without a status tells %d", past)
		}
		pg.Status = wantedStatus(pg, &State{View: v}, time.Now())
		if past := PastOf(pg); past != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, past, tc.want)
		}
	}
}

// A group that has never had a reservation does not speak of one; one that had says that it ended.
func TestTheStatusSaysWhatIsReserved(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	pg := &schedulingv1alpha1.PodGroup{Spec: schedulingv1alpha1.PodGroupSpec{MinMember: 4}}
	for _, step := range []struct{ said, want string }{
		{"", ""},
		{"2 nodes reserved, on which at least 1 pod has to end first",
			"True NodesReserved 2 nodes reserved, on which at least 1 pod has to end first"},
		{"", "False NotReserved "},
	} {
		pg.Status = wantedStatus(pg, &State{Reserved: Reservation{Message: step.said}}, now)
		got := ""
		if c := meta.FindStatusCondition(pg.Status.Conditions, schedulingv1alpha1.PodGroupReserved); c != nil {
			got = fmt.Sprint(c.Status, " ", c.Reason, " ", c.Message)
		}
		if got != step.want {
			t.Errorf("said %q: the condition is %q, want %q", step.said, got, step.want)
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
	for _, tc := range []struct {
		name   string
		set    func(v *gang.View)
		before string
		want   string
	}{
		{"too few members", func(v *gang.View) { v.Count[gang.Pending] = 1 }, "", "Pending"},
		{"too few members, let in by Volcano", func(v *gang.View) { v.Count[gang.Pending] = 1 }, "Inqueue", "Inqueue"},
		{"being bound", func(v *gang.View) { v.Count[gang.Pending], v.Count[gang.Bound] = 1, 1 }, "Pending", "Inqueue"},
		{"all have a node", func(v *gang.View) { v.Count[gang.Bound] = 2 }, "Inqueue", "Running"},
		{"all run", func(v *gang.View) { v.Count[gang.Bound], v.Running = 2, 2 }, "Inqueue", "Running"},
		{"one has succeeded", func(v *gang.View) { v.Count[gang.Bound], v.Running, v.Count[gang.Succeeded] = 1, 1, 1 },
			"Running", "Running"},
		{"the minimum has succeeded and a further member runs",
			func(v *gang.View) { v.Count[gang.Bound], v.Running, v.Count[gang.Succeeded] = 1, 1, 2 }, "Running", "Running"},
		{"the minimum has succeeded and a further member has a node",
			func(v *gang.View) { v.Count[gang.Bound], v.Count[gang.Succeeded] = 1, 2 }, "Completed", "Running"},
		{"all with a node have succeeded", func(v *gang.View) { v.Count[gang.Pending], v.Count[gang.Succeeded] = 1, 2 },
			"Running", "Completed"},
		{"a member is lost and the other runs",
			func(v *gang.View) { v.Count[gang.Bound], v.Running, v.Degraded = 1, 1, true }, "Running", "Unknown"},
		{"a member is lost and the other does not run",
			func(v *gang.View) { v.Count[gang.Bound], v.Degraded = 1, true }, "Running", "Pending"},
		{"all have failed", func(v *gang.View) { v.Count[gang.Failed], v.Degraded = 2, true }, "Running", "Completed"},
		{"one has succeeded and one has failed", func(v *gang.View) {
			v.Count[gang.Succeeded], v.Count[gang.Failed], v.Degraded = 1, 1, true
		}, "Running", "Completed"},
		{"one has failed and the other runs", func(v *gang.View) {
			v.Count[gang.Bound], v.Running, v.Count[gang.Failed], v.Degraded = 1, 1, 1, true
		}, "Running", "Unknown"},
		{"one has failed and the other has a node", func(v *gang.View) {
			v.Count[gang.Bound], v.Count[gang.Failed], v.Degraded = 1, 1, true
		}, "Running", "Running"},
		{"one has failed before the other has a node", func(v *gang.View) {
			v.Count[gang.Pending], v.Count[gang.Failed] = 1, 1
		}, "Pending", "Pending"},
	} {
		v := gang.View{Minimum: gang.Minimum{Total: 2}}
		tc.set(&v)
		status := map[string]any{}
		if tc.before != "" {
			status["phase"] = tc.before
		}
		p := progressOf(&State{View: v})
		p.fill(status, read.VolcanoGroup)
		if status["phase"] != tc.want {
			t.Errorf("%s: phase %v, want %s", tc.name, status["phase"], tc.want)
		}
	}
}
