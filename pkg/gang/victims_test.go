package gang

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	theGang   = ID{Namespace: "ns", Name: "gang"}
	otherGang = ID{Namespace: "ns", Name: "other"}
)

// option changes a victim.
type option func(*Victim)

// low returns a pod of priority 1 that has a GPU and, unless an option says otherwise, no group.
func low(name string, node int, options ...option) Victim {
	v := Victim{UID: UID(name), Node: node, Priority: 1, Started: t0, Requests: Vector{1}}
	for _, o := range options {
		o(&v)
	}
	return v
}

func inGroup(id ID) option            { return func(v *Victim) { v.Group = id } }
func as(role string) option           { return func(v *Victim) { v.Role = role } }
func gpus(n int64) option             { return func(v *Victim) { v.Requests = Vector{n} } }
func requests(r ...int64) option      { return func(v *Victim) { v.Requests = r } }
func ofPriority(p int32) option       { return func(v *Victim) { v.Priority = p } }
func age(d time.Duration) option      { return func(v *Victim) { v.Started = t0.Add(-d) } }
func coveredBy(budgets ...int) option { return func(v *Victim) { v.Budgets = budgets } }

// standing returns a group of bound members that are all there is of it.
func standing(minimum, bound int) VictimGroup {
	return VictimGroup{Minimum: Minimum{Total: minimum}, Settled: bound, Bound: bound}
}

// standingByRole returns a group of bound members with minimums by role.
func standingByRole(minimum, bound int, least, settled map[string]int) VictimGroup {
	return VictimGroup{Minimum: Minimum{Total: minimum, Roles: least}, Settled: bound, SettledByRole: settled, Bound: bound}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	four := []Victim{
		low("a", 0, inGroup(theGang), age(4*time.Hour)), low("b", 0, inGroup(theGang), age(time.Hour)),
		low("c", 1, inGroup(theGang), age(3*time.Hour)), low("d", 1, inGroup(theGang), age(2*time.Hour)),
	}
	team := []Victim{
		low("leader", 0, inGroup(theGang), as("leader")),
		low("w1", 0, inGroup(theGang), as("worker"), age(2*time.Hour)), low("w2", 0, inGroup(theGang), as("worker"), age(time.Hour)),
	}
	for _, tc := range []struct {
		name    string
		victims []Victim
		group   VictimGroup
		budgets []int
		// want names the pods of each unit, and the units that go with it.
		want []string
	}{
		{"single pods go one by one, the least important first",
			[]Victim{low("a", 0, ofPriority(2)), low("b", 1)}, VictimGroup{}, nil, []string{"b", "a"}},
		{"pods of the gang's priority or more are safe",
			[]Victim{low("a", 0, ofPriority(10)), low("b", 0, ofPriority(11))}, VictimGroup{}, nil, nil},
		{"pods that a budget protects are safe",
			[]Victim{low("a", 0, coveredBy(0)), low("b", 0, coveredBy(1))}, VictimGroup{}, []int{0, 1}, []string{"b"}},
		{"a group at its minimum goes whole", four, standing(4, 4), nil, []string{"b d c a"}},
		{"any members are the surplus, and all go together",
			four, standing(2, 4), nil, []string{"b", "d", "c", "a", " with b, d, c, a"}},
		{"what is left of a degraded group goes whole", four[:2], standing(3, 2), nil, []string{"b a"}},
		{"a member that is too important saves the rest",
			append([]Victim{low("x", 2, inGroup(theGang), ofPriority(10))}, four...), standing(4, 5), nil, []string{"b", "d", "c", "a"}},
		{"a member that a budget protects saves the rest, and is no surplus",
			append([]Victim{low("x", 2, inGroup(theGang), coveredBy(0))}, four...), standing(4, 5), []int{0}, []string{"b", "d", "c", "a"}},
		{"a budget that does not allow the whole group saves the rest",
			[]Victim{low("a", 0, inGroup(theGang), coveredBy(0)), low("b", 0, inGroup(theGang), coveredBy(0)), low("c", 0, inGroup(theGang))}, standing(2, 3), []int{1}, []string{"a", "b", "c"}},
		{"members that have succeeded do not save a group",
			four[:2], VictimGroup{Minimum: Minimum{Total: 3}, Settled: 3, Bound: 2}, nil, []string{"b a"}},
		{"members that have succeeded count towards the minimum",
			four[:2], VictimGroup{Minimum: Minimum{Total: 3}, Settled: 5, Bound: 2}, nil, []string{"b", "a"}},
		{"a bound member that is not among the victims saves the rest", four[:3], standing(3, 4), nil, []string{"b", "c", "a"}},
		{"a group that goes as a whole only has no surplus", four,
			VictimGroup{Minimum: Minimum{Total: 2}, Settled: 4, Bound: 4, AllOrNothing: true}, nil, []string{"b d c a"}},
		{"a role keeps its minimum, so that others are the surplus",
			team,
			standingByRole(2, 3, map[string]int{"leader": 1, "worker": 1}, map[string]int{"leader": 1, "worker": 2}),
			nil, []string{"w2", "w1", "leader with w2, w1"}},
		{"the minimum in all keeps what no role needs",
			team,
			standingByRole(3, 3, map[string]int{"leader": 1}, map[string]int{"leader": 1}),
			nil, []string{"leader w2 w1"}},
		{"members of a group that is not known are single pods",
			[]Victim{low("a", 0, inGroup(otherGang)), low("b", 0, inGroup(otherGang))}, standing(2, 2), nil, []string{"a", "b"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			groups := map[ID]VictimGroup{theGang: tc.group}
			p := &EvictProblem{Priority: 10, Nodes: make([]EvictNode, 3), Victims: tc.victims, Budgets: tc.budgets, Groups: groups}
			units, _ := p.units([]int{0})
			var got []string
			names := func(u unit) string {
				var names []string
				for _, i := range u.victims {
					names = append(names, string(p.Victims[i].UID))
				}
				return strings.Join(names, " ")
			}
			for _, u := range units {
				text := names(u)
				var surplus []string
				for _, i := range u.surplus {
					surplus = append(surplus, names(units[i]))
				}
				if len(surplus) > 0 {
					text += " with " + strings.Join(surplus, ", ")
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("units (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSurplus(t *testing.T) {
	t.Parallel()
	members := []Victim{
		low("old", 0, age(4*time.Hour)), low("new", 0, age(time.Hour)), low("least", 1, ofPriority(0), age(3*time.Hour)),
		low("leader", 1, as("leader"), ofPriority(0)),
	}
	for _, tc := range []struct {
		name  string
		group VictimGroup
		want  []UID
	}{
		{"none at the minimum", standing(4, 4), nil},
		{"none below the minimum", standing(5, 4), nil},
		{"the lower priority, then the later start", standing(1, 4), []UID{"leader", "least", "new"}},
		{"all that the minimum spares, if others have succeeded",
			VictimGroup{Minimum: Minimum{Total: 4}, Settled: 9, Bound: 4}, []UID{"leader", "least", "new", "old"}},
		{"never one that its role needs",
			standingByRole(2, 4, map[string]int{"leader": 1}, map[string]int{"leader": 1}),
			[]UID{"least", "new"}},
		{"none while a role lacks its minimum",
			standingByRole(2, 4, map[string]int{"leader": 2}, map[string]int{"leader": 1}), nil},
		{"none of a group that goes as a whole only",
			VictimGroup{Minimum: Minimum{Total: 1}, Settled: 4, Bound: 4, AllOrNothing: true}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var got []UID
			for _, i := range Surplus(members, tc.group) {
				got = append(got, members[i].UID)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("surplus (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHolds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name         string
		free, demand Vector
		want         bool
	}{
		{"exactly what is asked for", Vector{2, 0}, Vector{2, 0}, true},
		{"too little of one", Vector{2, 0}, Vector{2, 1}, false},
		{"nothing is asked of what is overdrawn", Vector{2, -1}, Vector{2, 0}, true},
		{"what is missing at the end is zero", Vector{2}, Vector{2, 1}, false},
		{"nothing is asked for", nil, Vector{0}, true},
	} {
		if got := tc.free.Holds(tc.demand); got != tc.want {
			t.Errorf("%s: %v holds %v: %t, want %t", tc.name, tc.free, tc.demand, got, tc.want)
		}
	}
}
