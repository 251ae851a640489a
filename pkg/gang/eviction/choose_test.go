package eviction

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/gang"
)

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestChoose(t *testing.T) {
	t.Parallel()
	half := func(name string, node int, options ...option) Victim {
		return low(name, node, append([]option{gpus(4)}, options...)...)
	}
	full := func(name string, node int, options ...option) Victim {
		return low(name, node, append([]option{gpus(8)}, options...)...)
	}
	for _, tc := range []struct {
		name    string
		problem *Problem
		outcome Outcome
		reason  string
		victims []gang.UID
		groups  []gang.ID
		// placed is not checked if it is nil.
		placed []Placement
	}{
		{name: "no pod goes if there is room", problem: wants(2, 8, 8, 0, 8).with(full("a", 1)), outcome: RoomAlready,
			placed: []Placement{{0, "n0", 1}, {0, "n2", 1}}},
		{name: "exactly those go that make room",
			problem: wants(2, 8, 0, 0, 0).
				with(half("a", 0), half("b", 0), half("c", 1), half("d", 1), full("x", 2, ofPriority(2))),
			outcome: RoomAfterEviction, victims: []gang.UID{"a", "b", "c", "d"},
			placed: []Placement{{0, "n0", 1}, {0, "n1", 1}}},
		{name: "what is free is used, and so is what is left over", problem: wants(4, 2, 3, 0).with(full("a", 1)),
			outcome: RoomAfterEviction, victims: []gang.UID{"a"}, placed: []Placement{{0, "n0", 1}, {0, "n1", 3}}},
		{name: "no pod goes if the gang still could not start",
			problem: wants(6, 8, 0, 0).with(full("a", 0), full("b", 1)),
			reason:  "evicting pods of lower priority makes room for 2 of 6 members"},
		{name: "pods of the same priority stay", problem: wants(1, 8, 0).with(full("a", 0, ofPriority(100))),
			reason: "there are no pods of lower priority"},

		{name: "a group that goes takes its surplus along, wherever that is",
			problem: wants(2, 8, 0, 0, 0).gang(theGang, 2, 8, 0, 1, 2).change(func(p *Problem) {
				p.Classes[0].Fits = []bool{false, true, true}
			}),
			outcome: RoomAfterEviction, victims: []gang.UID{"gang0", "gang1", "gang2"}, groups: []gang.ID{theGang}},
		{name: "of a group the members go that are on the node, however old they are",
			problem: wants(1, 8, 0, 0).gang(theGang, 2, 4, 0, 1, 0, 1).change(func(p *Problem) {
				p.Classes[0].Fits = []bool{true, false}
				for i := range p.Victims {
					p.Victims[i].Started = t0.Add(time.Duration(p.Victims[i].Node) * time.Hour)
				}
			}),
			outcome: RoomAfterEviction, victims: []gang.UID{"gang0", "gang2"}},
		{name: "eight small pods go rather than a large group",
			problem: wants(1, 8, zeros(20)...).gang(theGang, 19, 8, upTo(0, 18)...).filled(19, 8),
			outcome: RoomAfterEviction, victims: []gang.UID{"n19-0", "n19-1", "n19-2", "n19-3", "n19-4", "n19-5", "n19-6",
				"n19-7"}},
		{name: "a group is as important as its most important member, though that is surplus",
			outcome: RoomAfterEviction, victims: []gang.UID{"b"},
			problem: wants(1, 8, 0, 0, 0).
				with(full("l", 0, inGroup(theGang), as("leader")), low("w", 1, inGroup(theGang), ofPriority(5)),
					full("b", 2, ofPriority(3))).
				change(func(p *Problem) {
					p.Groups[theGang] = Group{
						Minimum: gang.Minimum{Roles: map[string]int{"leader": 1}},
						Settled: 2, SettledByRole: map[string]int{"leader": 1}, Bound: 2,
					}
				})},
		{
			name: "a group goes for most members and single pods for the rest",
			problem: wants(5, 8, zeros(9)...).gang(theGang, 4, 8, 0, 1, 2, 3).gang(otherGang, 4, 8, 4, 5, 6, 7).filled(8, 3,
				gpus(3)),
			outcome: RoomAfterEviction, victims: []gang.UID{"gang0", "gang1", "gang2", "gang3", "n8-0", "n8-1", "n8-2"},
			groups: []gang.ID{theGang},
		},
		{name: "groups that are scattered stay if single pods are in the way elsewhere",
			outcome: RoomAfterEviction, problem: wants(8, 8, zeros(40)...).scatter(32, 8, 32).change(func(p *Problem) {
				for n := range 8 {
					p.filled(32+n, 8)
				}
			}), victims: singles(8, 32, 8)},
		{name: "a group that may be disrupted only as a whole loses no surplus",
			problem: wants(1, 8, 0, 0, 0).gang(theGang, 1, 8, 0, 1, 2).change(func(p *Problem) {
				p.Groups[theGang] = Group{Minimum: gang.Minimum{Total: 1}, Settled: 3, Bound: 3, AllOrNothing: true}
			}),
			outcome: RoomAfterEviction, victims: []gang.UID{"gang0", "gang1", "gang2"}, groups: []gang.ID{theGang}},
		{name: "members that go together only all count towards what a group spares",
			problem: wants(4, 8, 0, 0, 0, 0, 0).gang(theGang, 2, 8, 0, 1, 2, 3, 4).change(func(p *Problem) {
				p.Victims[0].With, p.Victims[1].With = "x", "x"
				g := p.Groups[theGang]
				g.Together = map[string]int{"x": 2}
				p.Groups[theGang] = g
			}),
			outcome: RoomAfterEviction, victims: []gang.UID{"gang0", "gang1", "gang2", "gang3", "gang4"},
			groups: []gang.ID{theGang}},
		{name: "a group one member of which may not go stays",
			problem: wants(1, 8, 0, 0).gang(theGang, 2, 8, 0, 1).change(func(p *Problem) {
				p.Victims[1].Priority = 100
			}),
			reason: "PodDisruptionBudgets and the minimum of gangs protect all pods of lower priority"},
		{name: "a group with a member on a node that is not known goes whole",
			problem: wants(1, 8, 0, 0).gang(theGang, 2, 8, 0, -1),
			outcome: RoomAfterEviction, victims: []gang.UID{"gang0", "gang1"}, groups: []gang.ID{theGang}},

		{name: "a budget is kept, though a gang cannot start",
			problem: wants(2, 8, 0, 0).with(full("a", 0, coveredBy(0)), full("b", 1, coveredBy(0))).
				allowing(1),
			reason: "PodDisruptionBudgets do not allow the evictions that would make room"},
		{name: "a pod that a budget protects is no reason to evict others on its node",
			problem: wants(1, 8, 0, 0).with(half("a", 0, coveredBy(0)), half("b", 0), full("c", 1, ofPriority(50))).
				allowing(0),
			outcome: RoomAfterEviction, victims: []gang.UID{"c"}},

		{name: "of equally important pods those go that lose the least work, though they are more",
			problem: wants(1, 8, 0, 0).filled(0, 8, losing(1)).with(full("a", 1, losing(9))),
			outcome: RoomAfterEviction, victims: []gang.UID{"n0-0", "n0-1", "n0-2", "n0-3", "n0-4", "n0-5", "n0-6", "n0-7"}},
		{name: "what spare members have lost is not lost twice when the group goes",
			problem: wants(2, 8, 0, 0, 0, 0, 0).gang(theGang, 2, 8, 0, 1, 2).with(full("a", 3, losing(8)),
				full("b", 4, losing(8))).
				change(func(p *Problem) {
					for i := range 3 {
						p.Victims[i].Lost = 5
					}
				}),
			outcome: RoomAfterEviction, victims: []gang.UID{"a", "gang0"}},
		{name: "a pod that has just started and asks for time goes after others of its priority",
			problem: wants(1, 8, 0, 0).with(full("a", 0, protected), full("b", 1, losing(1e9))),
			outcome: RoomAfterEviction, victims: []gang.UID{"b"}},
		{name: "a group is protected with one of its members",
			problem: wants(1, 8, 0, 0, 0).gang(theGang, 2, 8, 0, 1).with(full("a", 2, losing(1e9))).change(func(p *Problem) {
				p.Victims[0].Protected = true
			}),
			outcome: RoomAfterEviction, victims: []gang.UID{"a"}},
		{name: "what an important pod spares on its node counts",
			outcome: RoomAfterEviction, victims: []gang.UID{"a", "n0-0", "n0-1", "n0-2", "n0-3"},
			problem: wants(1, 12, zeros(8)...).filled(0, 8).with(full("a", 0, ofPriority(5))).change(func(p *Problem) {
				for n := 1; n < 8; n++ {
					p.with(full(fmt.Sprint("b", n), n, ofPriority(5))).filled(n, 6).filled(n, 1, ofPriority(100), gpus(2))
				}
			})},
		{name: "of equal pods the one goes that started last",
			problem: wants(1, 8, 0, 0, 0).
				with(full("a", 0, age(2*time.Hour)), full("b", 1, age(time.Hour)), full("c", 2, age(3*time.Hour))),
			outcome: RoomAfterEviction, victims: []gang.UID{"b"}},
		{name: "the pod goes that frees all that is short", outcome: RoomAfterEviction, victims: []gang.UID{"c"},
			problem: wants(1, 0, 0).
				with(low("a", 0, requests(4, 0)), low("b", 0, requests(0, 4)), low("c", 0, requests(4, 4))).
				change(func(p *Problem) {
					p.Nodes[0].Free, p.Classes[0].Demand = Vector{0, 0}, Vector{4, 4}
				})},
		{name: "a resource that is overcommitted does not matter if it is not asked for",
			outcome: RoomAfterEviction, victims: []gang.UID{"a"},
			problem: wants(1, 4, 0).with(low("a", 0, requests(4, 0))).change(func(p *Problem) {
				p.Nodes[0].Free, p.Classes[0].Demand = Vector{0, -5}, Vector{4, 0}
			})},

		{name: "one domain has to hold all",
			outcome: RoomAfterEviction, victims: []gang.UID{"c"}, placed: []Placement{{0, "n2", 1}, {0, "n3", 1}},
			problem: wants(2, 8, 8, 0, 0, 8, 8).with(full("a", 1, ofPriority(60)), full("c", 2)).change(func(p *Problem) {
				p.Domains = [][]int{{0, 1}, {2, 3}, {4}}
			})},
		{name: "no domain is large enough", reason: "evicting pods of lower priority makes room for 1 of 2 members",
			problem: wants(2, 8, 0, 0).with(full("a", 0), full("b", 1)).change(func(p *Problem) {
				p.Domains = [][]int{{0}, {1}}
			})},

		{name: "each role gets its minimum",
			outcome: RoomAfterEviction, victims: []gang.UID{"a", "b"}, placed: []Placement{{0, "n1", 2}, {1, "n0", 1}},
			problem: wants(0, 0, 0, 0).with(full("a", 0), full("b", 1)).change(func(p *Problem) {
				p.Classes = []Class{{Demand: Vector{4}, Count: 9, Role: "worker"}, {Demand: Vector{8}, Count: 1, Role: "leader"}}
				p.Need = gang.Minimum{Roles: map[string]int{"leader": 1, "worker": 2}}
			})},
		{name: "no pod goes if a role cannot get its minimum",
			reason: "evicting pods of lower priority makes room for 2 of 3 members",
			problem: wants(0, 0, 0, 0).with(full("a", 0), full("b", 1)).change(func(p *Problem) {
				p.Classes = []Class{{Demand: Vector{4}, Count: 9, Role: "worker"}, {Demand: Vector{16}, Count: 1, Role: "leader"}}
				p.Need = gang.Minimum{Roles: map[string]int{"leader": 1, "worker": 2}}
			})},

		{name: "a large member leaves the node alone that holds two small ones",
			outcome: RoomAlready, placed: []Placement{{0, "n0", 2}, {1, "n1", 1}},
			problem: wants(3, 2, 4, 3).change(func(p *Problem) {
				p.Classes = []Class{{Demand: Vector{2}, Count: 2}, {Demand: Vector{3}, Count: 1}}
			})},
		{name: "small members come first if large ones would take their only place",
			outcome: RoomAfterEviction, victims: []gang.UID{"a", "b", "c"}, placed: []Placement{{0, "n1", 2}, {1, "n0", 1}},
			problem: wants(3, 8, 0, 0).with(full("a", 0), full("b", 1), full("c", 1)).change(func(p *Problem) {
				p.Classes = []Class{{Demand: Vector{8}, Count: 2}, {Demand: Vector{4}, Count: 1, Fits: []bool{true, false}}}
			})},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := Choose(tc.problem)
			if got.Outcome != tc.outcome || got.Reason != tc.reason {
				t.Errorf("outcome %d, reason %q, want %d and %q", got.Outcome, got.Reason, tc.outcome, tc.reason)
			}
			if diff := cmp.Diff(tc.victims, uidsOf(tc.problem, got)); diff != "" {
				t.Errorf("victims (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.groups, got.Groups); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.placed, got.Placed); tc.placed != nil && diff != "" {
				t.Errorf("assignments (-want +got):\n%s", diff)
			}
			if wrong := wrongWith(tc.problem, got); wrong != "" {
				t.Errorf("wrong: %s", wrong)
			}
		})
	}
}
