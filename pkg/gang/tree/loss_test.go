package tree

import "testing"

func TestAGroupWithinLosesAllOrStaysWhole(t *testing.T) {
	t.Parallel()
	copyOf := func(name string) Group {
		return Group{Name: name, Least: 1, Roles: map[string]int{name + "/leader": 1},
			Groups: []Group{{Name: name + ".shard", Roles: map[string]int{name + ".shard": 2}}}}
	}
	g := &Group{Least: 1, Groups: []Group{{Name: "replica", Copies: true, Least: 1, Groups: []Group{copyOf("replica-0"),
		copyOf("replica-1")}}}}
	bound := map[string]int{"replica-0/leader": 1, "replica-0.shard": 3, "replica-1/leader": 1, "replica-1.shard": 1,
		"replica-1/more": 1}
	for name, test := range map[string]struct {
		lost map[string]int
		want bool
	}{
		"nothing is lost":                             {nil, true},
		"a member beyond the minimum of its group":    {map[string]int{"replica-0.shard": 1}, true},
		"one that its group needs":                    {map[string]int{"replica-0.shard": 2}, false},
		"a group without which that around is broken": {map[string]int{"replica-0.shard": 3}, false},
		"the only copy that is whole":                 {map[string]int{"replica-0.shard": 3, "replica-0/leader": 1}, false},
		"one of a copy that is not whole":             {map[string]int{"replica-1.shard": 1}, false},
		"all that a copy needs, and not the others":   {map[string]int{"replica-1.shard": 1, "replica-1/leader": 1}, false},
		"all of a copy that is not whole": {map[string]int{"replica-1.shard": 1, "replica-1/leader": 1,
			"replica-1/more": 1}, true},
		"a member that no group has": {map[string]int{"other": 1}, true},
	} {
		if got := g.tolerates(test.lost, bound, func(role string) int { return bound[role] }); got != test.want {
			t.Errorf("%s: tolerates %v, want %v", name, got, test.want)
		}
	}
	var optional []string
	g.Optional(func(of *Group) { optional = append(optional, of.Name) })
	if len(optional) != 2 || optional[0] != "replica-0" || optional[1] != "replica-1" {
		t.Errorf("optional are %v", optional)
	}
}
