package eviction

import (
	"math/rand/v2"
	"slices"
	"testing"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/tree"
)

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
