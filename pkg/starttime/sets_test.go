package starttime

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"berth.dev/berth/pkg/runtimes"
	"berth.dev/berth/pkg/tree"
)

// setsIn returns sets that each need members, by class, in one domain of the first level.
func setsIn(nodes []Node, rack func(node int) int, needs ...[]int) *tree.Problem {
	p := &tree.Problem{Levels: [][]int{nil}, Asks: make([][]int64, len(needs[0])), Sets: []tree.Set{{Level: tree.None,
		Held: tree.None, Need: make([]int, len(needs[0])), Least: len(needs), Enough: tree.None}}}
	for n := range nodes {
		p.Levels[0] = append(p.Levels[0], rack(n))
	}
	for i, need := range needs {
		p.Sets = append(p.Sets, tree.Set{Level: 0, Held: tree.None, Need: need, Enough: tree.None})
		p.Sets[0].Sets = append(p.Sets[0].Sets, i+1)
	}
	return p
}

func TestPlansOfSets(t *testing.T) {
	hour := runtimes.Certain(time.Hour)
	pairs := func(node int) int { return node / 2 }
	four := []Node{whole("a", 0), whole("b", 0, 60*minute), whole("c", 0), whole("d", 0, 20*minute)}
	for _, c := range []struct {
		name  string
		nodes []Node
		gangs []Gang
		want  []string
	}{
		{"free nodes of two racks do not start a segment", four,
			[]Gang{{Name: "g", Members: []Members{{0, 2}}, MaxNodes: 9, Run: hour, Tree: setsIn(four, pairs, []int{2})}},
			[]string{"g [c d] 20"}},
		{"each segment has its rack, and the last says when", four,
			[]Gang{{Name: "g", Members: []Members{{0, 4}}, MaxNodes: 9, Run: hour,
				Tree: setsIn(four, pairs, []int{2}, []int{2})}}, []string{"g [c d a b] 60"}},
		{"the next gang starts after the one before it, in a rack", four,
			[]Gang{{Name: "g", Members: []Members{{0, 2}}, MaxNodes: 9, Run: hour, Tree: setsIn(four, pairs, []int{2})},
				{Name: "h", Members: []Members{{0, 2}}, MaxNodes: 9, Run: hour, Tree: setsIn(four, pairs, []int{2})},
				{Name: "i", Members: []Members{{0, 2}}, MaxNodes: 9, Tree: setsIn(four, pairs, []int{2})}},
			[]string{"g [c d] 20", "h [a b] 60", "i [c d] 80"}},
		{"no more nodes are used than allowed", four,
			[]Gang{{Name: "g", Members: []Members{{0, 4}}, MaxNodes: 3, Tree: setsIn(four, pairs, []int{2}, []int{2})}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := told(c.nodes, c.gangs); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestASegmentStaysInItsRackUnlessItStartsMuchSoonerElsewhere(t *testing.T) {
	for _, c := range []struct {
		name  string
		other time.Duration
		want  []string
	}{
		{"a little sooner is not enough", 30 * minute, []string{"a", "b"}},
		{"less than half of the time is", 10 * minute, []string{"c", "d"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			board := NewBoard(Defaults())
			plan := func(other time.Duration) []string {
				nodes := []Node{whole("a", 0, 40*minute), whole("b", 0, 40*minute), whole("c", 0, other), whole("d", 0)}
				g := gang("g", 2)
				g.Tree = setsIn(nodes, func(n int) int { return n / 2 }, []int{2})
				var names []string
				for _, place := range board.Plan(nodes, []Gang{g}, now)[0].Places {
					names = append(names, nodes[place.Node].Name)
				}
				slices.Sort(names)
				return names
			}
			if first := plan(90 * minute); !slices.Equal(first, []string{"a", "b"}) {
				t.Fatalf("first %q", first)
			}
			if got := plan(c.other); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// sharedNode has eight GPUs, on which pods end that each have some of them.
func sharedNode(name string, shapes []int64, draw func(int) int) Node {
	n := Node{Name: name, Fits: make([][]int, len(shapes)), Free: make([][][]int64, len(shapes))}
	ends, left := []time.Duration{}, int64(8)
	var gpus []int64
	for range draw(4) {
		end, has := time.Duration(draw(60))*minute, min(int64(1+draw(4)), left)
		if draw(12) == 0 {
			end = runtimes.Never
		}
		ends, gpus, left = append(ends, end), append(gpus, has), left-has
	}
	slices.Sort(ends)
	for gone := range len(ends) + 1 {
		if gone > 0 {
			n.Ends = append(n.Ends, runtimes.Certain(ends[gone-1]))
			left += gpus[gone-1]
		}
		n.Free[0] = append(n.Free[0], []int64{left})
		for shape, ask := range shapes {
			n.Fits[shape] = append(n.Fits[shape], int(left/ask))
		}
	}
	return n
}

// fitsBy tries all ways to give each set a rack, and each member a node of it, in what is free by then.
func fitsBy(nodes []Node, g *Gang, at time.Duration) bool {
	free := make([]int64, len(nodes))
	for n := range nodes {
		gone := 0
		for gone < len(nodes[n].Ends) && nodes[n].Ends[gone].At(0.5) <= at {
			gone++
		}
		free[n] = nodes[n].Free[0][gone][0]
	}
	type member struct{ set, class int }
	var members []member
	for set := range g.Tree.Sets {
		for class, count := range g.Tree.Sets[set].Need {
			members = append(members, slices.Repeat([]member{{set, class}}, count)...)
		}
	}
	rack := map[int]int{}
	var place func(i int) bool
	place = func(i int) bool {
		if i == len(members) {
			return true
		}
		m := members[i]
		in, begun := rack[m.set]
		for n := range nodes {
			ask := g.Tree.Asks[m.class][0]
			if free[n] < ask || begun && g.Tree.Levels[0][n] != in {
				continue
			}
			free[n], rack[m.set] = free[n]-ask, g.Tree.Levels[0][n]
			if place(i + 1) {
				return true
			}
			if free[n] += ask; !begun {
				delete(rack, m.set)
			}
		}
		return false
	}
	return place(0)
}

func TestTheStartOfSetsIsNearlyAlwaysTheSoonestAndNeverSooner(t *testing.T) {
	draw := rand.New(rand.NewPCG(7, 1)).IntN
	possible, found := 0, 0
	for i := range 3000 {
		shapes := [][]int64{{4, 3}, {8, 1}, {5, 2}}[draw(3)]
		nodes := make([]Node, 2+draw(4))
		for n := range nodes {
			nodes[n] = sharedNode(fmt.Sprint("n", n), shapes, draw)
		}
		racks := make([]int, len(nodes))
		for n := range racks {
			racks[n] = draw(3)
		}
		var needs [][]int
		for range 1 + draw(2) {
			needs = append(needs, []int{1 + draw(2), draw(3)})
		}
		g := Gang{Name: "g", Members: []Members{{Shape: 0}, {Shape: 1}}, MaxNodes: len(nodes),
			Tree: setsIn(nodes, func(n int) int { return racks[n] }, needs...)}
		g.Tree.Asks = [][]int64{{shapes[0]}, {shapes[1]}}
		best := runtimes.Never
		for at := time.Duration(0); at < time.Hour; at += minute {
			if fitsBy(nodes, &g, at) {
				best = at
				break
			}
		}
		plan := NewBoard(Defaults()).Plan(nodes, []Gang{g}, now)
		switch {
		case best == runtimes.Never && len(plan) > 0:
			t.Fatalf("case %d: a start where none is possible: %+v", i, plan[0])
		case best == runtimes.Never:
			continue
		case len(plan) > 0 && plan[0].Start.At(0.5) < best:
			t.Fatalf("case %d: starts at %s, and the soonest is %s", i, plan[0].Start.At(0.5), best)
		}
		possible++
		if len(plan) > 0 && plan[0].Start.At(0.5) == best {
			found++
		}
		if len(plan) > 0 {
			checkPlaces(t, nodes, &g, &plan[0])
		}
	}
	t.Logf("found %d of %d", found, possible)
	if possible < 1000 || found*1000 < possible*995 {
		t.Errorf("found %d of %d, want 99.5%% of at least 1,000", found, possible)
	}
}

// checkPlaces fails if the places of a gang are not enough, or are more than what is free by then.
func checkPlaces(t *testing.T, nodes []Node, g *Gang, r *Reservation) {
	t.Helper()
	need := make([]int, len(g.Members))
	for i := range g.Tree.Sets {
		for class, count := range g.Tree.Sets[i].Need {
			need[class] += count
		}
	}
	used, gone := map[int]int64{}, map[int]int{}
	for _, place := range r.Places {
		need[place.Members] -= place.Count
		used[place.Node] += int64(place.Count) * g.Tree.Asks[place.Members][0]
		gone[place.Node] = place.Gone
	}
	for n, amount := range used {
		if amount > nodes[n].Free[0][gone[n]][0] {
			t.Fatalf("%d GPUs of node %d are kept, it has %v", amount, n, nodes[n].Free[0])
		}
	}
	if slices.ContainsFunc(need, func(n int) bool { return n != 0 }) {
		t.Fatalf("places %v leave %v without one", r.Places, need)
	}
}

// BenchmarkPlanBySet is for a gang of 64 in four segments, in racks of 20, on nodes with eight pods each.
func BenchmarkPlanBySet(b *testing.B) {
	for _, size := range []int{1000, 5000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			source := learnt(r)
			nodes := make([]Node, size)
			for i := range nodes {
				nodes[i] = Node{Name: fmt.Sprint("n", i), Fits: [][]int{{0, 0, 0, 0, 0, 0, 0, 0, 1}}}
				for range 8 {
					nodes[i].Ends = append(nodes[i].Ends, source.Left(time.Duration(r.ExpFloat64()*float64(time.Hour))))
				}
			}
			g := gang("g", 64)
			g.Tree = setsIn(nodes, func(n int) int { return n / 20 }, []int{16}, []int{16}, []int{16}, []int{16})
			board := NewBoard(Defaults())
			b.ReportAllocs()
			for b.Loop() {
				if plan := board.Plan(nodes, []Gang{g}, now); len(plan) == 0 {
					b.Fatal("there is no start")
				}
			}
		})
	}
}
