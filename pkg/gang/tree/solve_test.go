package tree

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// racks makes nodes with so much free in each rack, of one resource; all classes fit anywhere.
func racks(classes int, free ...[]int64) ([]Node, []int) {
	var nodes []Node
	var rack []int
	for r, of := range free {
		for _, n := range of {
			nodes, rack = append(nodes, Node{Free: []int64{n}, Slots: slices.Repeat([]int{100}, classes)}), append(rack, r)
		}
	}
	return nodes, rack
}

func TestSolve(t *testing.T) {
	root := func(least int, sets ...int) Set {
		return Set{Level: None, Need: []int{0, 0}, Held: None, Sets: sets, Least: least, Enough: None}
	}
	of := func(need ...int) Set { return Set{Level: 0, Need: need, Held: None, Enough: None} }
	changed := func(s Set, how func(*Set)) Set { how(&s); return s }
	for _, tc := range []struct {
		name  string
		free  [][]int64
		sets  []Set
		order []int
		whole bool
		// homes are the racks of the sets but for the first, None for those without a place.
		homes []int
	}{
		{name: "each set goes to the tightest rack", free: [][]int64{{8, 8}, {4, 4}}, whole: true,
			sets: []Set{root(1, 1), of(2, 0)}, homes: []int{1}},
		{name: "a rack that two sets fit is not taken from the one that needs it", whole: true,
			free: [][]int64{{8, 4}, {4, 4}}, sets: []Set{root(2, 1, 2), of(2, 0), of(1, 1)}, homes: []int{1, 0}},
		{name: "where not all fit, nothing is whole, and what fits is told", free: [][]int64{{4, 4}, {4}},
			sets: []Set{root(2, 1, 2), of(2, 0), of(2, 0)}, homes: []int{0, None}},
		{name: "of sets beyond the least number whole ones are placed", free: [][]int64{{4, 4}, {4, 4}}, whole: true,
			sets: []Set{root(1, 1, 2), of(2, 0), of(2, 0)}, homes: []int{0, 1}},
		{name: "a set stays where members of it are", free: [][]int64{{4, 4}, {4}}, whole: true,
			sets: []Set{root(1, 1), changed(of(1, 0), func(s *Set) { s.Held = 0 })}, homes: []int{0}},
		{name: "sets that are alone have racks of their own, the roomiest first", free: [][]int64{{4}, {4, 4}}, whole: true,
			sets: []Set{root(2, 1, 2), changed(of(1, 0), func(s *Set) { s.Alone = true }),
				changed(of(1, 0), func(s *Set) { s.Alone = true })}, homes: []int{1, 0}},
		{name: "and wait for them", free: [][]int64{{4, 4}},
			sets: []Set{root(2, 1, 2), changed(of(1, 0), func(s *Set) { s.Alone = true }),
				changed(of(1, 0), func(s *Set) { s.Alone = true })}, homes: []int{0, None}},
		{name: "others may be beside one that is alone", free: [][]int64{{4, 4}}, whole: true,
			sets: []Set{root(2, 1, 2), changed(of(1, 0), func(s *Set) { s.Alone = true }), of(1, 0)}, homes: []int{0, 0}},
		{name: "racks are filled in their order", free: [][]int64{{4, 4}, {4, 4, 4, 4}}, whole: true, order: []int{1, 0},
			sets: []Set{root(2, 1, 2), of(2, 0), of(2, 0)}, homes: []int{1, 1}},
		{name: "parts count where they are enough", free: [][]int64{{4, 4, 4}, {4, 4}}, whole: true,
			sets: []Set{changed(root(2, 1, 2), func(s *Set) { s.Enough = 5 }), of(3, 0), of(3, 0)}, homes: []int{0, 1}},
		{name: "halves of two sets do not", free: [][]int64{{4, 4, 4}, {4}}, sets: []Set{
			changed(root(1, 1, 2), func(s *Set) { s.Least, s.Enough = 2, 4 }), of(2, 0), of(2, 0)}, whole: false,
			homes: []int{0, 0}},
		{name: "a set without a level is placed in that around it", free: [][]int64{{4}, {4, 2}}, whole: true,
			sets: []Set{changed(root(2, 1, 2), func(s *Set) { s.Level = 0 }),
				changed(of(1, 0), func(s *Set) { s.Level = None }), changed(of(0, 1), func(s *Set) { s.Level = None })},
			homes: []int{1, 1}},
		{name: "a rack that is only preferred is taken if it is large enough", free: [][]int64{{4}, {4, 4}}, whole: true,
			sets:  []Set{root(1, 1), changed(of(2, 0), func(s *Set) { s.Level, s.Prefer = None, []int{0} })},
			homes: []int{1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			nodes, rack := racks(2, tc.free...)
			p := &Problem{Nodes: nodes, Asks: [][]int64{{4}, {2}}, Levels: [][]int{rack}, Sets: tc.sets,
				Order: map[int][]int{0: tc.order}}
			a := p.Solve()
			homes := []int{}
			for i := range p.Sets[1:] {
				homes = append(homes, None)
				if a.Placed[i+1] {
					homes[i] = a.Homes[i+1].Domain
				}
			}
			if diff := cmp.Diff(tc.homes, homes); diff != "" || a.Whole != tc.whole {
				t.Errorf("whole %t, want %t; homes (-want +got):\n%s", a.Whole, tc.whole, diff)
			}
			check(t, p, a)
		})
	}
}

// check fails if the answer gives members places that they do not have, or says that it is whole and is not.
func check(t *testing.T, p *Problem, a *Answer) {
	t.Helper()
	free := make([][]int64, len(p.Nodes))
	slots := make([][]int, len(p.Nodes))
	for i := range p.Nodes {
		free[i], slots[i] = slices.Clone(p.Nodes[i].Free), slices.Clone(p.Nodes[i].Slots)
	}
	for set := range p.Sets {
		of := &p.Sets[set]
		for class, nodes := range a.Nodes[set] {
			if len(nodes) > of.members(class) || len(nodes) > 0 && !a.Placed[set] {
				t.Fatalf("set %d has %d members of class %d, placed %t: %+v", set, len(nodes), class, a.Placed[set], of)
			}
			for _, n := range nodes {
				if of.Level != None && p.Levels[of.Level][n] != p.Levels[of.Level][a.Nodes[set][class][0]] {
					t.Fatalf("set %d is in two domains", set)
				}
				if home := a.Homes[set]; home.Level != None && p.Levels[home.Level][n] != home.Domain {
					t.Fatalf("set %d has members outside its home", set)
				}
				slots[n][class]--
				for r, ask := range p.Asks[class] {
					if free[n][r] -= ask; free[n][r] < 0 {
						t.Fatalf("node %d has too little of resource %d", n, r)
					}
				}
				if slots[n][class] < 0 {
					t.Fatalf("node %d takes fewer members of class %d", n, class)
				}
			}
		}
	}
	var whole func(set int) bool
	whole = func(set int) bool {
		of := &p.Sets[set]
		if !a.Placed[set] {
			return false
		}
		for class, n := range of.Need {
			if len(a.Nodes[set][class]) < n {
				return false
			}
		}
		n := 0
		for _, within := range of.Sets {
			if whole(within) {
				n++
			}
		}
		return n >= of.Least || of.Enough != None && a.count() >= of.Enough
	}
	if a.Whole && !whole(0) {
		t.Fatalf("an answer that is not whole says that it is: %+v of %+v", a, p.Sets)
	}
}

// random draws a small tree on a few uneven racks in two zones, with demands of two resources. It is tight: about half
// of the trees fit.
func random(draw func(n int) int) *Problem {
	p := &Problem{Levels: [][]int{nil, nil}}
	classes := 1 + draw(3)
	for range classes {
		p.Asks = append(p.Asks, []int64{int64(1 + draw(5)), int64(draw(4))})
	}
	for range 3 + draw(4) {
		n := Node{Free: []int64{int64(draw(9)), int64(3 + draw(6))}}
		for range classes {
			n.Slots = append(n.Slots, []int{100, 100, 100, 100, 1, 0}[draw(6)])
		}
		zone, rack := draw(2), draw(2)
		p.Nodes = append(p.Nodes, n)
		p.Levels[0], p.Levels[1] = append(p.Levels[0], zone), append(p.Levels[1], zone*2+rack)
	}
	members := 3 + draw(5)
	need := func() []int {
		out := make([]int, classes)
		for range 1 + draw(3) {
			if members > 0 {
				out[draw(classes)]++
				members--
			}
		}
		return out
	}
	set := func(levels ...int) int {
		p.Sets = append(p.Sets, Set{Level: levels[draw(len(levels))], Held: None, Need: need(), Enough: None})
		return len(p.Sets) - 1
	}
	root := set(None, None, 0)
	p.Sets[root].Need = make([]int, classes)
	if draw(3) == 0 {
		p.Sets[root].Need[draw(classes)]++
		members--
	}
	for members > 0 {
		s := set(None, 0, 1, 1)
		p.Sets[root].Sets = append(p.Sets[root].Sets, s)
		if draw(3) == 0 && members > 0 {
			inner := set(None, 1)
			p.Sets[s].Sets, p.Sets[s].Least = []int{inner}, 1
		}
	}
	p.Sets[root].Least = max(len(p.Sets[root].Sets)-draw(2), min(1, len(p.Sets[root].Sets)))
	return p
}

// exists tries all ways to place what is needed: which sets, and each member on each node.
func exists(p *Problem) bool {
	type member struct{ set, class int }
	parent := make([]int, len(p.Sets))
	parent[0] = None
	for i := range p.Sets {
		for _, within := range p.Sets[i].Sets {
			parent[within] = i
		}
	}
	var members []member
	// Sets that do not start are chosen first.
	var choose func(order []int) bool
	free := make([][]int64, len(p.Nodes))
	placed := make([][]int, len(p.Nodes))
	for n := range p.Nodes {
		free[n], placed[n] = slices.Clone(p.Nodes[n].Free), make([]int, len(p.Asks))
	}
	domain := make([]int, len(p.Sets))
	count := make([]int, len(p.Sets))
	var place func(i int) bool
	place = func(i int) bool {
		if i == len(members) {
			return true
		}
		m := members[i]
		for n := range p.Nodes {
			fits := placed[n][m.class] < p.Nodes[n].Slots[m.class]
			for r, ask := range p.Asks[m.class] {
				fits = fits && free[n][r] >= ask
			}
			for s := m.set; s != None; s = parent[s] {
				if level := p.Sets[s].Level; level != None {
					fits = fits && p.Levels[level][n] != None && (count[s] == 0 || domain[s] == p.Levels[level][n])
				}
			}
			if !fits {
				continue
			}
			for s := m.set; s != None; s = parent[s] {
				if count[s]++; p.Sets[s].Level != None {
					domain[s] = p.Levels[p.Sets[s].Level][n]
				}
			}
			placed[n][m.class]++
			for r, ask := range p.Asks[m.class] {
				free[n][r] -= ask
			}
			done := place(i + 1)
			placed[n][m.class]--
			for r, ask := range p.Asks[m.class] {
				free[n][r] += ask
			}
			for s := m.set; s != None; s = parent[s] {
				count[s]--
			}
			if done {
				return true
			}
		}
		return false
	}
	var add func(set int)
	add = func(set int) {
		for class, n := range p.Sets[set].Need {
			for range n {
				members = append(members, member{set, class})
			}
		}
		for _, within := range p.Sets[set].Sets {
			if set != 0 {
				add(within)
			}
		}
	}
	choose = func(chosen []int) bool {
		if len(chosen) == p.Sets[0].Least {
			members = members[:0]
			add(0)
			for _, set := range chosen {
				add(set)
			}
			return place(0)
		}
		for _, set := range p.Sets[0].Sets {
			if len(chosen) == 0 || set > chosen[len(chosen)-1] {
				if choose(append(slices.Clone(chosen), set)) {
					return true
				}
			}
		}
		return false
	}
	return choose(nil)
}
