package eviction

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/gang"
)

// What no small random problem shows: reasons, ties, large clusters, and classes that get in each other's way. The
// tests against every choice compare all else.
func TestChoose(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		problem *Problem
		reason  string
		victims []gang.UID
	}{
		{name: "no pod goes if the gang still could not start",
			problem: wants(6, 8, 0, 0).with(low("a", 0), low("b", 1)),
			reason:  "evicting pods of lower priority makes room for 2 of 6 members"},
		{name: "no pod goes if a role cannot get its minimum",
			problem: wants(0, 0, 0, 0).with(low("a", 0), low("b", 1)).change(func(p *Problem) {
				p.Classes = []Class{{Demand: Vector{4}, Count: 9, Role: "worker"}, {Demand: Vector{16}, Count: 1, Role: "leader"}}
				p.Need = gang.Minimum{Roles: map[string]int{"leader": 1, "worker": 2}}
			}),
			reason: "evicting pods of lower priority makes room for 2 of 3 members"},
		{name: "no domain is large enough",
			problem: wants(2, 8, 0, 0).with(low("a", 0), low("b", 1)).change(func(p *Problem) { p.Domains = [][]int{{0}, {1}} }),
			reason:  "evicting pods of lower priority makes room for 1 of 2 members"},
		{name: "pods of the same priority stay",
			problem: wants(1, 8, 0).with(low("a", 0)).change(func(p *Problem) { p.Victims[0].Priority = p.Priority }),
			reason:  "there are no pods of lower priority"},
		{name: "a group one member of which may not go stays",
			problem: wants(1, 8, 0, 0).gang(2, 8, 0, 1).change(func(p *Problem) { p.Victims[1].Priority = p.Priority }),
			reason:  "PodDisruptionBudgets and the minimum of gangs protect all pods of lower priority"},
		{name: "a budget is kept, though a gang cannot start",
			problem: wants(2, 8, 0, 0).with(low("a", 0), low("b", 1)).change(func(p *Problem) {
				p.Budgets, p.Victims[0].Budgets, p.Victims[1].Budgets = []int{1}, []int{0}, []int{0}
			}),
			reason: "PodDisruptionBudgets do not allow the evictions that would make room"},

		{name: "of equal pods the one goes that started last", victims: []gang.UID{"b"},
			problem: wants(1, 8, 0, 0, 0).with(low("a", 0), low("b", 1), low("c", 2)).change(func(p *Problem) {
				p.Victims[1].Started = t0.Add(time.Hour)
			})},
		{name: "groups that are scattered stay if single pods are in the way elsewhere",
			problem: wants(2, 8, make([]int64, 34)...).scatter(32, 8, 32).with(low("a", 32), low("b", 33)),
			victims: []gang.UID{"a", "b"}},
		{name: "small members come first if large ones would take their only place",
			victims: []gang.UID{"a", "b", "c"},
			problem: wants(3, 8, 0, 0).with(low("a", 0), low("b", 1), low("c", 1)).change(func(p *Problem) {
				p.Classes = []Class{{Demand: Vector{8}, Count: 2}, {Demand: Vector{4}, Count: 1, Fits: []bool{true, false}}}
			})},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := Choose(tc.problem)
			if got.Reason != tc.reason {
				t.Errorf("reason %q, want %q", got.Reason, tc.reason)
			}
			if diff := cmp.Diff(tc.victims, uidsOf(tc.problem, got)); diff != "" {
				t.Errorf("victims (-want +got):\n%s", diff)
			}
			if wrong := wrongWith(tc.problem, got); wrong != "" {
				t.Errorf("wrong: %s", wrong)
			}
		})
	}
}
