package tree

import (
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// comesFree is a node for one member that comes free at a time.
func comesFree(at int64) []Node { return []Node{{At: at, Slots: []int{1}}} }

func TestSoonest(t *testing.T) {
	t.Parallel()
	segments := func(needs ...int) []Set {
		all := []Set{{Level: None, Held: None, Need: []int{0}, Least: len(needs), Enough: None}}
		for i, need := range needs {
			all = append(all, Set{Level: 0, Held: None, Need: []int{need}, Enough: None})
			all[0].Sets = append(all[0].Sets, i+1)
		}
		return all
	}
	for _, tc := range []struct {
		name string
		// free is when the nodes of each rack come free.
		free [][]int64
		sets []Set
		// at is the answer, homes are the racks, and nodes those that are taken; none if there is no answer.
		at    int64
		homes []int
		nodes []int
	}{
		{name: "the last of the segments says when", free: [][]int64{{0, 9}, {0, 7}, {3, 3}}, sets: segments(2, 2), at: 7,
			homes: []int{2, 1}, nodes: []int{4, 5, 2, 3}},
		{name: "segments that are done sooner take the racks that are", free: [][]int64{{6, 6}, {0, 0}, {8, 8, 8, 8}},
			sets: segments(4, 2), at: 8, homes: []int{2, 1}, nodes: []int{4, 5, 6, 7, 2, 3}},
		{name: "what never fits has no answer", free: [][]int64{{0, 9}, {0}}, sets: segments(3)},
		{name: "a segment that has begun waits for its rack", free: [][]int64{{0, 9}, {0, 0}}, at: 9,
			sets: func() []Set {
				sets := segments(2)
				sets[1].Held = 0
				return sets
			}(), homes: []int{0}, nodes: []int{0, 1}},
		{name: "of two segments one is enough", free: [][]int64{{0, 9}, {0, 4}}, at: 4, sets: func() []Set {
			sets := segments(2, 2)
			sets[0].Least = 1
			return sets
		}(), homes: []int{1}, nodes: []int{2, 3}},
	} {
		p := &Problem{Asks: [][]int64{{}}, Sets: tc.sets, Levels: [][]int{nil}}
		var stages [][]Node
		for rack, nodes := range tc.free {
			for _, at := range nodes {
				stages, p.Levels[0] = append(stages, comesFree(at)), append(p.Levels[0], rack)
			}
		}
		at, answer := p.Soonest(stages)
		var homes, nodes []int
		if answer != nil {
			for i := range tc.sets[1:] {
				if answer.Placed[i+1] {
					homes = append(homes, answer.Homes[i+1].Domain)
					nodes = append(nodes, answer.Nodes[i+1][0]...)
				}
			}
		}
		if diff := gocmp.Diff([][]int{tc.homes, tc.nodes}, [][]int{homes, nodes}); diff != "" || at != tc.at {
			t.Errorf("%s: at %d, want %d; homes and nodes (-want +got):\n%s", tc.name, at, tc.at, diff)
		}
	}
}

// grows has what nodes have come free in a few steps.
func grows(p *Problem, draw func(n int) int) [][]Node {
	stages := make([][]Node, len(p.Nodes))
	for n := range p.Nodes {
		last := Node{Free: p.Nodes[n].Free, Slots: p.Nodes[n].Slots}
		at := int64(draw(4))
		for range draw(3) {
			part := Node{At: at, Free: slices.Clone(last.Free), Slots: slices.Clone(last.Slots)}
			for r := range part.Free {
				part.Free[r] = int64(draw(int(last.Free[r]) + 1))
				if k := len(stages[n]); k > 0 {
					part.Free[r] = max(part.Free[r], stages[n][k-1].Free[r])
				}
			}
			stages[n] = append(stages[n], part)
			at += int64(1 + draw(4))
		}
		last.At = at
		stages[n] = append(stages[n], last)
	}
	return stages
}

// For small problems there is the truth to compare with: whether there is a way, and at which time the first.
func TestWhatFitsIsNearlyAlwaysFoundAndNeverTooSoon(t *testing.T) {
	t.Parallel()
	draw := rand.New(rand.NewPCG(4, 41)).IntN
	const cases = 3000
	plans, found, possible, soonest := 0, 0, 0, 0
	for i := range cases {
		p := random(draw)
		a, exist := p.Solve(), exists(p)
		if check(t, p, a); a.Whole && !exist {
			t.Fatalf("case %d: a plan is found that does not exist: %+v of %+v", i, a, p)
		}
		if exist {
			plans++
		}
		if a.Whole {
			found++
		}
		stages := grows(p, draw)
		at, answer := p.Soonest(stages)
		best, begin := int64(None), int64(20)
		for n := range stages {
			begin = min(begin, stages[n][0].At)
		}
		for time := begin; time <= 20; time++ {
			then := *p
			if then.Nodes = p.nodesAt(stages, time); exists(&then) {
				best = time
				break
			}
		}
		if answer != nil {
			then := *p
			then.Nodes = p.nodesAt(stages, at)
			check(t, &then, answer)
		}
		switch {
		case best == None && answer != nil, best != None && answer != nil && at < best:
			t.Fatalf("case %d: at %d, and the soonest is %d", i, at, best)
		case best == None:
			continue
		}
		possible++
		if answer != nil && at == best {
			soonest++
		}
	}
	t.Logf("of %d trees: found %d of %d plans, and %d of %d soonest ones", cases, found, plans, soonest, possible)
	if plans < cases/4 || plans > cases*3/4 || possible < cases/4 {
		t.Errorf("%d and %d of %d trees fit: they are too easy or too hard", plans, possible, cases)
	}
	if found*1000 < plans*999 || soonest*1000 < possible*995 {
		t.Errorf("found %d of %d plans, want 99.9%%, and %d of %d soonest ones, want 99.5%%", found, plans, soonest, possible)
	}
}
