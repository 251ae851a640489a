package eviction

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/tree"
)

var (
	theGang   = gang.ID{Namespace: "ns", Name: "gang"}
	otherGang = gang.ID{Namespace: "ns", Name: "other"}
)

// option changes a victim.
type option func(*Victim)

// together is an option for members that go together only.
func together(v *Victim) { v.With = "x" }

// low returns a pod of priority 1 that has a GPU and, unless an option says otherwise, no group.
func low(name string, node int, options ...option) Victim {
	v := Victim{UID: gang.UID(name), Node: node, Priority: 1, Started: t0, Requests: Vector{1}}
	for _, o := range options {
		o(&v)
	}
	return v
}

func inGroup(id gang.ID) option       { return func(v *Victim) { v.Group = id } }
func as(role string) option           { return func(v *Victim) { v.Role = role } }
func gpus(n int64) option             { return func(v *Victim) { v.Requests = Vector{n} } }
func requests(r ...int64) option      { return func(v *Victim) { v.Requests = r } }
func ofPriority(p int32) option       { return func(v *Victim) { v.Priority = p } }
func age(d time.Duration) option      { return func(v *Victim) { v.Started = t0.Add(-d) } }
func losing(work int64) option        { return func(v *Victim) { v.Lost = work } }
func protected(v *Victim)             { v.Protected = true }
func coveredBy(budgets ...int) option { return func(v *Victim) { v.Budgets = budgets } }

// standing returns a group of bound members that are all there is of it.
func standing(minimum, bound int) Group {
	return Group{Minimum: gang.Minimum{Total: minimum}, Settled: bound, Bound: bound}
}

// standingByRole returns a group of bound members with minimums by role.
func standingByRole(minimum, bound int, least, settled map[string]int) Group {
	return Group{Minimum: gang.Minimum{Total: minimum, Roles: least}, Settled: bound, SettledByRole: settled, Bound: bound}
}

// oneOf is a tree that needs one of several groups. Each needs a number of members.
func oneOf(groups ...any) *tree.Group {
	of := &tree.Group{Least: 1}
	for i := 0; i < len(groups); i += 2 {
		name, least := groups[i].(string), groups[i+1].(int)
		of.Groups = append(of.Groups, tree.Group{Name: name, Roles: map[string]int{name: least}})
	}
	return of
}

func TestUnits(t *testing.T) {
	t.Parallel()
	four := []Victim{
		low("a", 0, inGroup(theGang), age(4*time.Hour)), low("b", 0, inGroup(theGang), age(time.Hour)),
		low("c", 1, inGroup(theGang), age(3*time.Hour)), low("d", 1, inGroup(theGang), age(2*time.Hour)),
	}
	team := []Victim{
		low("leader", 0, inGroup(theGang), as("leader")),
		low("w1", 0, inGroup(theGang), as("worker"), age(2*time.Hour)), low("w2", 0, inGroup(theGang), as("worker"),
			age(time.Hour)),
	}
	for _, tc := range []struct {
		name    string
		victims []Victim
		group   Group
		budgets []int
		// want names the pods of each unit.
		want []string
	}{
		{"single pods go one by one, the least important first",
			[]Victim{low("a", 0, ofPriority(2)), low("b", 1)}, Group{}, nil, []string{"b", "a"}},
		{"pods of the gang's priority or more are safe",
			[]Victim{low("a", 0, ofPriority(10)), low("b", 0, ofPriority(11))}, Group{}, nil, nil},
		{"pods that a budget protects are safe",
			[]Victim{low("a", 0, coveredBy(0)), low("b", 0, coveredBy(1))}, Group{}, []int{0, 1}, []string{"b"}},
		{"a group at its minimum goes whole", four, standing(4, 4), nil, []string{"all: b d c a"}},
		{"any members are the surplus, and all go together",
			four, standing(2, 4), nil, []string{"b", "d", "c", "a", "all: b d c a"}},
		{"what is left of a degraded group goes whole", four[:2], standing(3, 2), nil, []string{"all: b a"}},
		{"a member that is too important saves the rest",
			append([]Victim{low("x", 2, inGroup(theGang), ofPriority(10))}, four...), standing(4, 5), nil,
			[]string{"b", "d", "c", "a"}},
		{"a member that a budget protects saves the rest, and is no surplus",
			append([]Victim{low("x", 2, inGroup(theGang), coveredBy(0))}, four...), standing(4, 5), []int{0},
			[]string{"b", "d", "c", "a"}},
		{"a budget that does not allow the whole group saves the rest",
			[]Victim{low("a", 0, inGroup(theGang), coveredBy(0)), low("b", 0, inGroup(theGang), coveredBy(0)),
				low("c", 0, inGroup(theGang))}, standing(2, 3), []int{1}, []string{"a", "b", "c"}},
		{"members that have succeeded do not save a group",
			four[:2], Group{Minimum: gang.Minimum{Total: 3}, Settled: 3, Bound: 2}, nil, []string{"all: b a"}},
		{"members that have succeeded count towards the minimum",
			four[:2], Group{Minimum: gang.Minimum{Total: 3}, Settled: 5, Bound: 2}, nil, []string{"b", "a"}},
		{"a bound member that is not among the victims saves the rest", four[:3], standing(3, 4), nil,
			[]string{"b", "c", "a"}},
		{"a group that goes as a whole only has no surplus", four,
			Group{Minimum: gang.Minimum{Total: 2}, Settled: 4, Bound: 4, AllOrNothing: true}, nil, []string{"all: b d c a"}},
		{"members that go together only are one of the surplus, if there is room for all of them",
			[]Victim{low("a", 0, inGroup(theGang), together), low("b", 1, inGroup(theGang), together),
				low("c", 0, inGroup(theGang)), low("d", 1, inGroup(theGang))},
			Group{Minimum: gang.Minimum{Total: 2}, Settled: 4, Bound: 4, Together: map[string]int{"x": 2}}, nil,
			[]string{"a b", "c", "d", "all: a b c d"}},
		{"members that only go together are no surplus if too few of them are beyond the minimum",
			[]Victim{low("a", 0, inGroup(theGang), together), low("b", 1, inGroup(theGang), together),
				low("c", 0, inGroup(theGang))},
			Group{Minimum: gang.Minimum{Total: 2}, Settled: 3, Bound: 3, Together: map[string]int{"x": 2}}, nil,
			[]string{"c", "all: a b c"}},
		{"members stay that go together with one that may not go",
			[]Victim{low("a", 0, inGroup(theGang), together), low("b", 1, inGroup(theGang))},
			Group{Minimum: gang.Minimum{Total: 1}, Settled: 3, Bound: 3, Together: map[string]int{"x": 2}}, nil,
			[]string{"b"}},
		{"a role keeps its minimum, so that others are the surplus",
			team,
			standingByRole(2, 3, map[string]int{"leader": 1, "worker": 1}, map[string]int{"leader": 1, "worker": 2}),
			nil, []string{"w2", "w1", "all: leader w2 w1"}},
		{"the minimum in all keeps what no role needs",
			team,
			standingByRole(3, 3, map[string]int{"leader": 1}, map[string]int{"leader": 1}),
			nil, []string{"all: leader w2 w1"}},
		{"a group within goes as a whole if the gang does not need it, also what is left of it",
			[]Victim{low("a1", 0, inGroup(theGang), as("a")), low("a2", 0, inGroup(theGang), as("a")),
				low("b1", 0, inGroup(theGang), as("b")), low("b2", 1, inGroup(theGang), as("b")),
				low("b3", 2, inGroup(theGang), as("b")), low("c1", 1, inGroup(theGang), as("c")),
				low("c2", 1, inGroup(theGang), as("c"))},
			Group{Minimum: gang.Minimum{Total: 2, Tree: oneOf("a", 2, "b", 2, "c", 3)}, Settled: 7, Bound: 7,
				SettledByRole: map[string]int{"a": 2, "b": 3, "c": 2}, BoundByRole: map[string]int{"a": 2, "b": 3, "c": 2}}, nil,
			[]string{"b1", "b2", "b3", "a1 a2", "b1 b2 b3", "c1 c2", "all: a1 a2 b1 b2 b3 c1 c2"}},
		{"a group within stays if one of its pods may not go",
			[]Victim{low("a1", 0, inGroup(theGang), as("a")), low("a2", 0, inGroup(theGang), as("a")),
				low("b1", 0, inGroup(theGang), as("b")), low("x", 0, inGroup(theGang), as("b"), ofPriority(10))},
			Group{Minimum: gang.Minimum{Total: 2, Tree: oneOf("a", 2, "b", 2)}, Settled: 4, Bound: 4,
				SettledByRole: map[string]int{"a": 2, "b": 2}, BoundByRole: map[string]int{"a": 2, "b": 2}}, nil,
			[]string{"a1 a2"}},
		{"members of a group that is not known are single pods",
			[]Victim{low("a", 0, inGroup(otherGang)), low("b", 0, inGroup(otherGang))}, standing(2, 2), nil, []string{"a", "b"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			groups := map[gang.ID]Group{theGang: tc.group}
			p := &Problem{Priority: 10, Nodes: make([]Node, 3), Classes: []Class{{Demand: Vector{1}}}, Victims: tc.victims,
				Budgets: tc.budgets, Groups: groups}
			var got []string
			for _, u := range prepare(p).units {
				var names []string
				for _, i := range u.victims {
					names = append(names, string(p.Victims[i].UID))
				}
				if u.whole {
					names = append([]string{"all:"}, names...)
				}
				got = append(got, strings.Join(names, " "))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("units (-want +got):\n%s", diff)
			}
		})
	}
}
