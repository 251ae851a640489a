package eviction

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/tree"
)

// racksOf is one level of racks of that size.
func racksOf(nodes, size int) [][]int {
	level := make([]int, nodes)
	for n := range level {
		level[n] = n / size
	}
	return [][]int{level}
}

// segments are sets of the first class that each need a rack.
func segments(needs ...int) []tree.Set {
	root := tree.Set{Level: tree.None, Held: tree.None, Need: []int{0}, More: []int{0}, Least: len(needs),
		Enough: tree.None}
	all := []tree.Set{root}
	for i, need := range needs {
		all = append(all, tree.Set{Level: 0, Held: tree.None, Need: []int{need}, More: []int{0}, Enough: tree.None})
		all[0].Sets = append(all[0].Sets, i+1)
	}
	return all
}

// fullNodes are nodes of 8 GPUs with a pod of 8 GPUs each, of these priorities; -1 is for none.
func fullNodes(size int, priorities ...int32) *Problem {
	p := &Problem{Priority: 10, Groups: map[gang.ID]Group{}, Classes: []Class{{Demand: Vector{8}, Count: 8}}}
	for n, priority := range priorities {
		p.Nodes = append(p.Nodes, Node{Name: fmt.Sprintf("n%d", n), Free: Vector{8}})
		if priority >= 0 {
			p.Nodes[n].Free[0] = 0
			p.Victims = append(p.Victims, Victim{UID: gang.UID(fmt.Sprintf("on n%d", n)), Node: n, Priority: priority,
				Started: t0, Requests: Vector{8}})
		}
	}
	p.Tree = &tree.Problem{Levels: racksOf(len(priorities), size)}
	return p
}

func TestChooseBySet(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		problem *Problem
		sets    []tree.Set
		outcome Outcome
		victims []gang.UID
	}{
		{"no pod goes if each segment has a rack", fullNodes(2, -1, -1, 3, -1, -1, -1), segments(2, 2), RoomAlready, nil},
		{"free nodes of several racks are no room for a segment", fullNodes(2, -1, 5, -1, 5, -1, -1), segments(2, 2),
			RoomAfterEviction, []gang.UID{"on n1"}},
		{"the rack goes whose pods are the least important", fullNodes(2, -1, 5, -1, 3, -1, -1), segments(2, 2),
			RoomAfterEviction, []gang.UID{"on n3"}},
		{"one pod more is better than a more important one", fullNodes(2, -1, 5, 3, 3, -1, -1), segments(2, 2),
			RoomAfterEviction, []gang.UID{"on n2", "on n3"}},
		{"pods of the gang's own priority stay", fullNodes(2, -1, 10, -1, 10, -1, -1), segments(2, 2), NoRoom, nil},
		{"a segment that has begun stays in its rack", fullNodes(2, -1, 5, -1, -1, -1, -1), func() []tree.Set {
			sets := segments(2, 2)
			sets[1].Held = 0
			return sets
		}(), RoomAfterEviction, []gang.UID{"on n1"}},
		{"two groups that each want a rack alone", fullNodes(4, -1, -1, -1, -1, 5, 4, 4, 3), func() []tree.Set {
			sets := segments(1, 1)
			sets[1].Alone, sets[2].Alone = true, true
			return sets
		}(), RoomAfterEviction, []gang.UID{"on n7"}},
		{"of three groups two are enough", fullNodes(2, 5, 5, 5, -1, -1, -1), func() []tree.Set {
			sets := segments(2, 2, 2)
			sets[0].Least = 2
			return sets
		}(), RoomAfterEviction, []gang.UID{"on n2"}},
		{"a member of no segment goes to a free node", fullNodes(2, 5, 5, 5, 5, -1), func() []tree.Set {
			sets := segments(2)
			sets[0].Need[0] = 1
			return sets
		}(), RoomAfterEviction, []gang.UID{"on n2", "on n3"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.problem.Tree.Sets = tc.sets
			plan := Choose(tc.problem)
			if plan.Outcome != tc.outcome {
				t.Fatalf("outcome %d, want %d: %+v", plan.Outcome, tc.outcome, plan)
			}
			if diff := cmp.Diff(tc.victims, uidsOf(tc.problem, plan)); diff != "" {
				t.Errorf("victims (-want +got):\n%s", diff)
			}
		})
	}
}

// Groups that are in the way with more members than they spare go as a whole, the smaller one rather than the larger.
func TestChooseBySetTakesTheSmallerGroup(t *testing.T) {
	t.Parallel()
	p := fullNodes(2, -1, 5, -1, 5, -1, -1, 5, 5, 5, 5)
	p.Tree.Sets = segments(2, 2)
	large, small := gang.ID{Name: "large"}, gang.ID{Name: "small"}
	for i := range p.Victims {
		p.Victims[i].Group = large
	}
	p.Victims[1].Group, p.Victims[2].Group = small, small
	p.Groups[large] = Group{Minimum: gang.Minimum{Total: 4}, Settled: 4, Bound: 4}
	p.Groups[small] = Group{Minimum: gang.Minimum{Total: 2}, Settled: 2, Bound: 2}
	plan := Choose(p)
	if diff := cmp.Diff([]gang.ID{small}, plan.Groups); diff != "" {
		t.Errorf("groups (-want +got):\n%s\n%+v", diff, plan)
	}
}

// drawTree has the gang of a problem be divided into sets with racks, some of them groups of groups in a zone.
func drawTree(d drawFunc, p *Problem) {
	p.Need, p.Domains = gang.Minimum{}, nil
	racks, zones := make([]int, len(p.Nodes)), make([]int, len(p.Nodes))
	for n := range racks {
		racks[n] = d("rack", 0, 3)
		zones[n] = racks[n] / 2
	}
	p.Tree = &tree.Problem{Levels: [][]int{zones, racks}}
	add := func(around, level int) int {
		set := tree.Set{Level: level, Held: tree.None, Need: make([]int, len(p.Classes)), More: make([]int, len(p.Classes)),
			Enough: tree.None}
		p.Tree.Sets = append(p.Tree.Sets, set)
		at := len(p.Tree.Sets) - 1
		if around >= 0 {
			p.Tree.Sets[around].Sets = append(p.Tree.Sets[around].Sets, at)
		}
		return at
	}
	leaf := func(around int) {
		at := add(around, d("level", 0, 1))
		set := &p.Tree.Sets[at]
		set.Alone = d("alone", 0, 4) == 0
		for c := range p.Classes {
			set.Need[c] = d("needs", 0, 2)
			p.Classes[c].Count += set.Need[c]
		}
	}
	root := add(-1, tree.None)
	for range d("sets", 1, 2) {
		leaf(root)
	}
	if d("nested", 0, 2) == 0 {
		inner := add(root, 0)
		leaf(inner)
		leaf(inner)
		p.Tree.Sets[inner].Least = d("least within", 1, 2)
	}
	p.Tree.Sets[root].Least = len(p.Tree.Sets[root].Sets) - d("spare sets", 0, 1)*min(1, len(p.Tree.Sets[root].Sets)-1)
}

// treeFits reports whether all sets that are needed have room after the evictions.
func (k reckoning) treeFits() bool {
	p := tree.Problem{Sets: k.p.Tree.Sets, Levels: k.p.Tree.Levels, Nodes: make([]tree.Node, len(k.p.Nodes))}
	for _, c := range k.p.Classes {
		p.Asks = append(p.Asks, c.Demand)
	}
	for n := range k.p.Nodes {
		p.Nodes[n].Free = k.free(n)
		for _, c := range k.p.Classes {
			slots := c.Count
			if !c.on(n) {
				slots = 0
			}
			p.Nodes[n].Slots = append(p.Nodes[n].Slots, slots)
		}
	}
	return p.Least() != nil
}

// For small problems there is the truth to compare with. Most of what is chosen is the cheapest there is.
func TestChooseBySetAgainstEveryChoice(t *testing.T) {
	t.Parallel()
	possible, missed, evicting, worse := 0, 0, 0, 0
	for seed := range 3000 {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		d := func(_ string, least, most int) int { return least + r.IntN(most-least+1) }
		p := drawProblem(d, problemSize{nodes: 6, victims: 8, groups: 2, classes: d("kinds", 1, 2), members: 1, budgets: 1})
		drawTree(d, p)
		plan := Choose(p)
		k := reckoning{p, make([]bool, len(p.Victims))}
		var best []bool
		for set := range 1 << len(p.Victims) {
			for i := range k.gone {
				k.gone[i] = set&(1<<i) != 0
			}
			if k.illegal() == "" && (best == nil || compareReckoned(k.cost(), reckoning{p, best}.cost()) < 0) && k.treeFits() {
				best = slices.Clone(k.gone)
			}
		}
		for i := range k.gone {
			k.gone[i] = slices.Contains(plan.Victims, i)
		}
		switch {
		case best == nil && plan.Outcome != NoRoom:
			t.Fatalf("problem %d has no answer, got %+v", seed, plan)
		case best == nil:
			continue
		case plan.Outcome == NoRoom:
			possible++
			missed++
			continue
		case k.illegal() != "" || !k.treeFits():
			t.Fatalf("problem %d: %s: %+v", seed, k.illegal(), plan)
		}
		possible++
		if slices.Contains(best, true) {
			evicting++
		}
		switch c := compareReckoned(k.cost(), reckoning{p, best}.cost()); {
		case c < 0:
			t.Fatalf("problem %d: %+v is cheaper than the best, %v", seed, plan, best)
		case c > 0:
			worse++
		}
	}
	t.Logf("not found: %d of %d; not the cheapest: %d of %d", missed, possible, worse, evicting)
	if missed > 1 || worse > 9 {
		t.Errorf("not found: %d of %d; not the cheapest: %d of %d", missed, possible, worse, evicting)
	}
}
