package tree

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMinimum(t *testing.T) {
	t.Parallel()
	roles := Minimum{Total: 5, Roles: map[string]int{"worker": 3, "leader": 1}}
	for _, tc := range []struct {
		name    string
		minimum Minimum
		// total members are there; have tells their roles.
		total int
		have  map[string]int
		met   bool
		left  Minimum
		text  string
	}{
		{"nothing is there", Minimum{Total: 3}, 0, nil, false, Minimum{Total: 3}, "3"},
		{"exactly enough", Minimum{Total: 3}, 3, nil, true, Minimum{}, "3"},
		{"nothing is there of any role", roles, 0, nil, false, roles, "5 (leader=1, worker=3)"},
		{"the total is there and a role is missing", roles, 7, map[string]int{"worker": 7}, false,
			Minimum{Total: 1, Roles: map[string]int{"leader": 1}}, "5 (leader=1, worker=3)"},
		{"everything is there", roles, 5, map[string]int{"worker": 4, "leader": 1}, true, Minimum{},
			"5 (leader=1, worker=3)"},
		{"roles that ask for more than the total", Minimum{Total: 1, Roles: map[string]int{"worker": 2}}, 1,
			map[string]int{"worker": 1}, false,
			Minimum{Total: 1, Roles: map[string]int{"worker": 1}}, "1 (worker=2)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			byRole := func(role string) int { return tc.have[role] }
			if met := tc.minimum.MetBy(tc.total, byRole); met != tc.met {
				t.Errorf("met %t, want %t", met, tc.met)
			}
			if diff := cmp.Diff(tc.left, tc.minimum.Without(tc.total, byRole)); diff != "" {
				t.Errorf("what is left (-want +got):\n%s", diff)
			}
			if tc.minimum.String() != tc.text {
				t.Errorf("text %q, want %q", tc.minimum, tc.text)
			}
		})
	}
}
