package preempt

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/eviction"
)

func TestACheckIsOfTheMembersThatThePlanHasPlaced(t *testing.T) {
	t.Parallel()
	r := &request{need: gang.Minimum{Total: 2}, classes: []requestClass{{class: "large", count: 2},
		{class: "small", role: "worker", count: 2},
		{class: "small", role: "leader", count: 1}}}
	members := []gang.Member{{Ref: gang.Ref{UID: "l1"}, Class: "large"}, {Ref: gang.Ref{UID: "w1"}, Class: "small",
		Role: "worker"}, {Ref: gang.Ref{UID: "l2"}, Class: "large"},
		{Ref: gang.Ref{UID: "w2"}, Class: "small", Role: "worker"}, {Ref: gang.Ref{UID: "first"}, Class: "small",
			Role: "leader"}}
	for _, tc := range []struct {
		name   string
		placed []eviction.Placement
		want   []gang.UID
	}{
		{"the oldest of a class", []eviction.Placement{{Class: 1, Node: "a", Members: 1}}, []gang.UID{"w1"}},
		{"as many as on all nodes together", []eviction.Placement{{Class: 0, Node: "a", Members: 1},
			{Class: 0, Node: "b", Members: 1}}, []gang.UID{"l1", "l2"}},
		{"a role of its own", []eviction.Placement{{Class: 2, Node: "a", Members: 1}, {Class: 1, Node: "a", Members: 1}},
			[]gang.UID{"w1", "first"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := &checking{request: r, demand: gang.Demand{Members: members},
				found: &proposal{Plan: eviction.Plan{Placed: tc.placed}}}
			var got []gang.UID
			for _, m := range c.proposed() {
				got = append(got, m.UID)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("members (-want +got):\n%s", diff)
			}
		})
	}
}
