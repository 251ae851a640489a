package tree

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// serving needs a router and two of three replicas.
func serving() *Group {
	copies := make([]Group, 3)
	for i, name := range []string{"replica-0", "replica-1", "replica-2"} {
		copies[i] = Group{Name: name, Roles: map[string]int{name + "/decode": 2, name + "/prefill": 1}}
	}
	return &Group{Least: 2, Groups: []Group{
		{Name: "router", Roles: map[string]int{"router": 1}},
		{Name: "replica", Groups: copies, Least: 2, Copies: true},
	}}
}

func TestAGroupOfGroupsIsMet(t *testing.T) {
	one := func(name string) map[string]int { return map[string]int{name + "/decode": 2, name + "/prefill": 1} }
	with := func(roles ...map[string]int) map[string]int {
		all := map[string]int{"router": 1}
		for _, r := range roles {
			for role, n := range r {
				all[role] += n
			}
		}
		return all
	}
	for _, tc := range []struct {
		name  string
		have  map[string]int
		short string
		// left is how many members are still needed.
		left int
	}{
		{"nothing is there", nil, "0 of the 1 member with role router that it needs", 7},
		{"two copies are whole, the first is not one of them", with(one("replica-1"), one("replica-2")), "", 0},
		{"members of another copy do not stand in for one that is missing",
			with(one("replica-0"), map[string]int{"replica-1/decode": 2, "replica-2/prefill": 1}),
			"1 of the 2 copies of group replica that it needs; the next has 0 of the 1 member with role replica-1/prefill", 1},
		{"the router is missing", map[string]int{"replica-0/decode": 2, "replica-0/prefill": 1, "replica-1/decode": 2,
			"replica-1/prefill": 1}, "0 of the 1 member with role router that it needs", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, have := serving(), func(role string) int { return tc.have[role] }
			if got := g.Short(have); got != tc.short {
				t.Errorf("short of %q, want %q", got, tc.short)
			}
			if g.Met(have) != (tc.short == "") {
				t.Errorf("met %t, short of %q", g.Met(have), tc.short)
			}
			if left := g.Without(have).Members(); left != tc.left {
				t.Errorf("%d members are still needed, want %d", left, tc.left)
			}
		})
	}
}

func TestAGroupThatNeedsMoreGroupsThanItHasIsShortOfThem(t *testing.T) {
	g := Group{Least: 3, Groups: []Group{{Name: "a"}, {Name: "b"}}}
	if got, want := g.Short(func(string) int { return 5 }), "2 of the 3 groups that it needs"; got != want {
		t.Errorf("short of %q, want %q", got, want)
	}
}

func TestAGroupHasTheNamesOfGroupsButNotOfTheirCopies(t *testing.T) {
	g := serving()
	for name, want := range map[string]bool{"router": true, "replica-1": true, "replica": false, "replica-3": false,
		"": false} {
		if got := g.Holds(name); got != want {
			t.Errorf("has %q: %t, want %t", name, got, want)
		}
		around := g.Around(name)
		if found := around != nil; found != want || found && around.Name != name {
			t.Errorf("around %q is %v", name, around)
		}
	}
	outer := Group{Groups: []Group{{Name: "a", Groups: []Group{{Name: "b"}}}}}
	if around := outer.Around("b"); around == nil || around.Name != "a" {
		t.Errorf("around b is %v, want a", around)
	}
}

func TestWhatAGroupSaysOfItself(t *testing.T) {
	g := serving()
	if want := "router (1 pod), 2 of 3 replica (decode=2, prefill=1)"; g.String() != want {
		t.Errorf("%s, want %s", g, want)
	}
	always := map[string]int{}
	g.Always(always)
	if diff := cmp.Diff(map[string]int{"router": 1}, always); diff != "" {
		t.Errorf("needed in any case: %s", diff)
	}
	g.Groups[1].Groups[1].Required = []string{"zone", "rack"}
	if level := g.Level(); level != "rack" {
		t.Errorf("level %q, want rack", level)
	}
	g.Groups[1].Least = 3
	g.Always(always)
	if len(always) != 7 || g.Equal(serving()) || !serving().Equal(serving()) || g.Equal(nil) {
		t.Errorf("with all copies needed: %v, equal to two of three: %t", always, g.Equal(serving()))
	}
}
