package tree

import (
	"cmp"
	"iter"
	"slices"
)

// search places sets, and takes back what does not lead on.
type search struct {
	*Problem
	free [][]int64
	// placed counts by node and class what was placed there.
	placed [][]int
	// taken are the domains of sets that are alone there.
	taken  map[Home]bool
	answer *Answer
	parts  parts
	// shares say how hard a member of each class is to place: the fewer slots all nodes have for it, the harder.
	shares []float64
	// looks bounds how many more nodes are looked at.
	looks int
}

func newSearch(p *Problem, looks int) *search {
	s := &search{Problem: p, taken: map[Home]bool{}, shares: make([]float64, len(p.Asks)),
		free: make([][]int64, len(p.Nodes)), placed: make([][]int, len(p.Nodes)),
		answer: &Answer{Homes: make([]Home, len(p.Sets)), Placed: make([]bool, len(p.Sets)),
			Nodes: make([][][]int, len(p.Sets))}}
	for i := range p.Nodes {
		s.free[i], s.placed[i] = slices.Clone(p.Nodes[i].Free), make([]int, len(p.Nodes[i].Slots))
	}
	for class := range p.Asks {
		slots := 0
		for i := range p.Nodes {
			slots += s.room(class, i)
		}
		s.shares[class] = 1 / float64(max(slots, 1))
	}
	for i := range p.Sets {
		s.answer.Homes[i], s.answer.Nodes[i] = Home{None, None}, make([][]int, len(p.Asks))
	}
	s.parts, s.looks = newParts(p), looks
	return s
}

// unbounded is how many members of a class fit as far as no account says otherwise.
const unbounded = 1 << 30

// room is how many more members of a class the node takes.
func (s *search) room(class, node int) int {
	s.looks--
	room := unbounded
	if class < len(s.placed[node]) {
		room = s.Nodes[node].Slots[class] - s.placed[node][class]
	}
	for r, ask := range s.Asks[class] {
		if ask > 0 && room > 0 {
			room = int(min(s.free[node][r]/ask, int64(room)))
		}
	}
	return max(room, 0)
}

// roomIn is how many more members of a class an area takes, counting no further than most, and from when on.
func (s *search) roomIn(class int, in area, most int) (room int, at int64) {
	for _, node := range in.nodes {
		if room >= most {
			break
		}
		if more := s.room(class, node); more > 0 {
			room, at = room+more, s.Nodes[node].At
		}
	}
	return room, at
}

// take puts a member of a class on a node, or takes it back with minus one.
func (s *search) take(set, class, node, by int) {
	for r, ask := range s.Asks[class] {
		s.free[node][r] -= ask * int64(by)
	}
	if class < len(s.placed[node]) {
		s.placed[node][class] += by
	}
	if nodes := &s.answer.Nodes[set][class]; by > 0 {
		*nodes = append(*nodes, node)
	} else {
		*nodes = (*nodes)[:len(*nodes)-1]
	}
}

// areas goes through the domains in which to try the set, those of narrower levels that it prefers first.
func (s *search) areas(set int, around area) iter.Seq[area] {
	return func(yield func(area) bool) {
		of, level := &s.Sets[set], s.Sets[set].Level
		if of.Held != None && level != None {
			around, level = s.parts.area(Home{level, of.Held}), None
		}
		for _, level := range append(slices.Clip(of.Prefer), level) {
			for in := range s.areasOf(level, s.demand(set), around, of.Alone) {
				if !yield(in) {
					return
				}
			}
		}
	}
}

// areasOf goes through the domains of the level within the area that may take what is needed: those that have a place
// in the order of the level first, then those that are ready the soonest, of these the tightest, or the roomiest.
// Without a level, that is the area itself.
func (s *search) areasOf(level int, need []int, around area, roomiest bool) iter.Seq[area] {
	return func(yield func(area) bool) {
		if level == None {
			yield(around)
			return
		}
		classes := s.byHardness(need)
		type candidate struct {
			area
			at   int64
			room int
		}
		var candidates []candidate
		for _, in := range s.parts.within(level, around) {
			c, fits := candidate{area: in}, true
			for i := 0; i < len(classes) && fits; i++ {
				room, at := s.roomIn(classes[i], in, need[classes[i]])
				c.at, fits = max(c.at, at), room >= need[classes[i]]
			}
			switch {
			case !fits:
				continue
			case in.order < unordered:
				if !yield(in) {
					return
				}
				continue
			case len(classes) > 0:
				c.room, _ = s.roomIn(classes[0], in, unbounded)
			}
			if roomiest {
				c.room = -c.room
			}
			candidates = append(candidates, c)
		}
		slices.SortStableFunc(candidates, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.room, b.room))
		})
		for _, c := range candidates {
			if !yield(c.area) {
				return
			}
		}
	}
}

// byHardness sorts the classes that are needed, the hardest to place first.
func (s *search) byHardness(need []int) []int {
	var classes []int
	for class, n := range need {
		if n > 0 {
			classes = append(classes, class)
		}
	}
	slices.SortStableFunc(classes, func(a, b int) int { return cmp.Compare(s.shares[b], s.shares[a]) })
	return classes
}

// whole places what the set needs within the area, itself and the sets within, and goes on with next. If that fails,
// nothing has changed.
func (s *search) whole(set int, around area, next func() bool) bool {
	of := &s.Sets[set]
	var members []int
	for _, class := range s.byHardness(of.Need) {
		members = append(members, slices.Repeat([]int{class}, of.Need[class])...)
	}
	groups := s.inOrder(of.Sets)
	before := s.answer.Homes[set]
	for in := range s.areas(set, around) {
		if s.looks <= 0 {
			break
		}
		if of.Alone && s.taken[in.home] {
			continue
		}
		s.answer.Homes[set], s.answer.Placed[set], s.taken[in.home] = in.home, true, s.taken[in.home] || of.Alone
		if s.pack(set, members, in, func() bool { return s.groups(set, groups, in, 0, next) }) {
			return true
		}
		if of.Alone {
			delete(s.taken, in.home)
		}
	}
	s.answer.Homes[set], s.answer.Placed[set] = before, false
	return false
}

// pack places the members, given by their classes, on nodes of the area.
func (s *search) pack(set int, members []int, in area, next func() bool) bool {
	if len(members) == 0 {
		return next()
	}
	class := members[0]
	for node := range s.nodesFor(class, in) {
		if s.looks <= 0 {
			return false
		}
		s.take(set, class, node, 1)
		if s.pack(set, members[1:], in, next) {
			return true
		}
		s.take(set, class, node, -1)
	}
	return false
}

// groups places the least number of the sets within, from the rest of them; whole is how many are placed already.
func (s *search) groups(set int, rest []int, in area, whole int, next func() bool) bool {
	least := s.Sets[set].Least
	if whole >= least {
		return next()
	}
	if whole+len(rest) < least || s.looks <= 0 {
		return false
	}
	first := rest[0]
	if s.whole(first, in, func() bool { return s.groups(set, rest[1:], in, whole+1, next) }) {
		return true
	}
	// Those that are like this one do not fit either.
	others := slices.DeleteFunc(slices.Clone(rest[1:]), func(i int) bool { return s.Same(first, i) })
	return s.groups(set, others, in, whole, next)
}

// fit is a node that takes room more members of a class, and what it has free of all resources from when on.
type fit struct {
	node, room int
	at, free   int64
}

func compareFits(a, b fit) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.room, b.room), cmp.Compare(a.free, b.free),
		cmp.Compare(a.node, b.node))
}

// fitOn is how a member of the class fits on the node.
func (s *search) fitOn(class, node int) fit {
	f := fit{node: node, room: s.room(class, node), at: s.Nodes[node].At}
	for _, n := range s.free[node] {
		f.free += n
	}
	return f
}

// tightest returns the node of the area that takes a member of the class and has the least left.
func (s *search) tightest(class int, in area) (fit, bool) {
	var best fit
	for _, node := range in.nodes {
		if f := s.fitOn(class, node); f.room > 0 && (best.room == 0 || compareFits(f, best) < 0) {
			best = f
		}
	}
	return best, best.room > 0
}

// nodesFor goes through the nodes of the area that take a member of the class, in the order of how they fit; of nodes
// that are alike it tries one.
func (s *search) nodesFor(class int, in area) iter.Seq[int] {
	return func(yield func(int) bool) {
		best, fits := s.tightest(class, in)
		if !fits || !yield(best.node) {
			return
		}
		var others []fit
		for _, node := range in.nodes {
			if f := s.fitOn(class, node); f.room > 0 {
				others = append(others, f)
			}
		}
		slices.SortFunc(others, compareFits)
		for i, f := range others {
			if f.node == best.node || i > 0 && s.alike(others[i-1].node, f.node) {
				continue
			}
			if !yield(f.node) {
				return
			}
		}
	}
}

// alike reports whether two nodes take the same members in the same domains.
func (s *search) alike(a, b int) bool {
	for _, of := range s.Levels {
		if of[a] != of[b] {
			return false
		}
	}
	return slices.Equal(s.free[a], s.free[b]) && slices.Equal(s.placed[a], s.placed[b]) &&
		slices.Equal(s.Nodes[a].Slots, s.Nodes[b].Slots)
}

// inOrder sorts sets: those with members that have a place first, then those that need the most.
func (s *search) inOrder(sets []int) []int {
	type weighed struct {
		set, held int
		weight    float64
	}
	all := make([]weighed, len(sets))
	for i, set := range sets {
		all[i].set = set
		if s.Sets[set].Held == None {
			all[i].held = 1
		}
		for class, n := range s.demand(set) {
			all[i].weight += float64(n) * s.shares[class]
		}
	}
	slices.SortStableFunc(all, func(a, b weighed) int {
		return cmp.Or(cmp.Compare(a.held, b.held), cmp.Compare(b.weight, a.weight))
	})
	out := make([]int, len(sets))
	for i := range all {
		out[i] = all[i].set
	}
	return out
}
