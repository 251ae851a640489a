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
		{"one is missing", Minimum{Total: 3}, 2, nil, false, Minimum{Total: 1}, "3"},
		{"exactly enough", Minimum{Total: 3}, 3, nil, true, Minimum{}, "3"},
		{"more than enough", Minimum{Total: 3}, 9, nil, true, Minimum{}, "3"},
		{"roles without a minimum count towards the total only", Minimum{Total: 3}, 3, map[string]int{"driver": 3}, true,
			Minimum{}, "3"},
		{"nothing is there of any role", roles, 0, nil, false, roles, "5 (leader=1, worker=3)"},
		{"each role is complete and one of any is missing", roles, 4, map[string]int{"worker": 3, "leader": 1}, false,
			Minimum{Total: 1}, "5 (leader=1, worker=3)"},
		{"the total is there and a role is missing", roles, 7, map[string]int{"worker": 7}, false,
			Minimum{Total: 1, Roles: map[string]int{"leader": 1}}, "5 (leader=1, worker=3)"},
		{"the total and a role are missing", roles, 2, map[string]int{"worker": 1, "leader": 1}, false,
			Minimum{Total: 3, Roles: map[string]int{"worker": 2}}, "5 (leader=1, worker=3)"},
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

func TestEqualMinimums(t *testing.T) {
	t.Parallel()
	a := Minimum{Total: 2, Roles: map[string]int{"worker": 1}}
	for _, tc := range []struct {
		name string
		b    Minimum
		want bool
	}{
		{"the same", Minimum{Total: 2, Roles: map[string]int{"worker": 1}}, true},
		{"another total", Minimum{Total: 3, Roles: map[string]int{"worker": 1}}, false},
		{"another number of a role", Minimum{Total: 2, Roles: map[string]int{"worker": 2}}, false},
		{"another role", Minimum{Total: 2, Roles: map[string]int{"leader": 1}}, false},
		{"no roles", Minimum{Total: 2}, false},
	} {
		if got := a.Equal(tc.b); got != tc.want {
			t.Errorf("%s: %t, want %t", tc.name, got, tc.want)
		}
	}
	if !(Minimum{Total: 1}).Equal(Minimum{Total: 1, Roles: map[string]int{}}) {
		t.Error("no roles and an empty list of roles differ")
	}
}

func TestMembersThatCanBeSpared(t *testing.T) {
	t.Parallel()
	twoOfThree := Minimum{Total: 4, Tree: &Group{Least: 2, Copies: true}}
	for _, name := range []string{"c-0", "c-1", "c-2"} {
		twoOfThree.Tree.Groups = append(twoOfThree.Tree.Groups, Group{Name: name, Roles: map[string]int{name: 2}})
	}
	leader := Minimum{Total: 2, Roles: map[string]int{"leader": 1}}
	for _, tc := range []struct {
		name    string
		minimum Minimum
		roles   []string
		want    []int
	}{
		{"the last ones go", Minimum{Total: 2}, []string{"", "", "", ""}, []int{3, 2}},
		{"no more than the minimum spares", Minimum{Total: 2}, []string{"", "", ""}, []int{2}},
		{"a role that is needed stays", leader, []string{"worker", "worker", "leader"}, []int{1}},
		{"none that helps goes where too few are there", leader, []string{"worker", "worker"}, []int{1}},
		{"whole copies stay", twoOfThree, []string{"c-0", "c-1", "c-1", "c-2", "c-2"}, []int{0}},
		{"what helps a copy that is not whole stays", twoOfThree, []string{"c-0", "c-1", "c-1"}, nil},
		{"of whole copies the first in the list stay", twoOfThree, []string{"c-2", "c-1", "c-0", "c-2", "c-0", "c-1"},
			[]int{5, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, tc.minimum.Spare(tc.roles)); diff != "" {
				t.Errorf("spared (-want +got):\n%s", diff)
			}
		})
	}
}
