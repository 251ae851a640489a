package gang

import (
	"slices"
	"testing"

	"berth.dev/berth/pkg/gang/tree"
)

// A gang that has started has lost members. It is asked of a new one of each role whether it may take what came free.
func TestWhatComesFreeIsForThoseThatAreMissing(t *testing.T) {
	t.Parallel()
	team := Minimum{Total: 3, Roles: map[string]int{"leader": 1, "worker": 2}}
	replica := func(name string) tree.Group {
		return tree.Group{Name: name, Roles: map[string]int{name + "/leader": 1, name + "/worker": 1}}
	}
	copies := Minimum{Total: 2, Tree: &tree.Group{Least: 1, Groups: []tree.Group{{Name: "replica", Copies: true, Least: 1,
		Groups: []tree.Group{replica("r0"), replica("r1"), replica("r2")}}}}}
	for _, tc := range []struct {
		name        string
		minimum     Minimum
		bound, lost []string
		// A further member of the roles in waits has to wait, one of those in goes is placed. role is whose room is kept,
		// empty for any.
		waits, goes []string
		role        string
	}{
		{"the leader", team, []string{"leader", "worker", "worker"}, []string{"leader"}, []string{"worker", "other"},
			[]string{"leader"}, "leader"},
		{"the leader of the copy that is needed", copies, []string{"r0/leader", "r0/worker"}, []string{"r0/leader"},
			[]string{"r0/worker"}, []string{"r0/leader", "r1/leader", "r1/worker"}, "r0/leader"},
		{"the leader of a copy beyond those, which keeps back its own workers alone", copies,
			[]string{"r0/leader", "r0/worker", "r1/leader", "r1/worker"}, []string{"r1/leader"}, []string{"r1/worker"},
			[]string{"r1/leader", "r0/worker", "r0/leader", "r2/worker"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			l := NewLedger(0, nil)
			spec := minimumOf(1)
			spec.Minimum = tc.minimum
			l.Define(g1, Object, spec, t0)
			of := map[string]UID{}
			for i, role := range tc.bound {
				of[role] = uid(i)
				l.Observe(g1, changed(i, func(m *Member) { m.State, m.Node, m.Role = Bound, node(i), role }), t0)
			}
			var lost []Loss
			for _, role := range tc.lost {
				e := l.Forget(of[role], t0)
				lost = append(lost, e.Lost...)
			}
			if kept := len(lost) > 0 && lost[len(lost)-1].Role != tc.role; kept {
				t.Errorf("room is kept for the role %q, want %q", lost[len(lost)-1].Role, tc.role)
			}
			for i, role := range slices.Concat(tc.waits, tc.goes) {
				l.Observe(g1, changed(10+i, func(m *Member) { m.Role = role }), t0)
				if goes := l.Cycles.Of(uid(10+i)).Purpose == Alone; goes != (i >= len(tc.waits)) {
					t.Errorf("another %s goes: %t, want %t", role, goes, !goes)
				}
				l.Forget(uid(10+i), t0)
			}
		})
	}
}
