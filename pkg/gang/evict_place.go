package gang

import (
	"cmp"
	"container/heap"
	"slices"
)

// arrange places members until the minimum is met, and reports whether it is. Where evict is set it evicts the pods that
// stand in the way.
//
// The members to place are decided on first: those of the classes that are easiest to place, unless a role needs others.
// They are placed hardest class first, because a class that fits on few nodes has to choose before one that fits on many.
// Members that find no room are replaced by members of other classes. If that fails, the classes come first that were short of
// room, and then the easiest, as in Build.
func (s *evictSearch) arrange(evict bool) bool {
	quota := s.quota()
	start := len(s.trail)
	hardest := slices.Clone(s.easiest)
	slices.Reverse(hardest)
	for _, class := range hardest {
		s.place(class, quota[class], evict)
	}
	short := ahead(hardest, func(class int) bool { return s.count[class] < quota[class] })
	if s.complete(evict) || len(s.classes) < 2 {
		return s.met()
	}
	for _, order := range [][]int{short, s.easiest} {
		s.undo(start)
		for _, class := range order {
			s.place(class, quota[class], evict)
		}
		if s.complete(evict) {
			return true
		}
	}
	return false
}

// quota returns, by class, how many members to place if there is room for all.
func (s *evictSearch) quota() []int {
	quota := make([]int, len(s.classes))
	need := s.p.Need.Total
	for role, least := range s.p.Need.Roles {
		for _, class := range s.easiest {
			if s.classes[class].role == role && least > 0 {
				quota[class] = min(least, s.reach[class])
				least -= quota[class]
				need -= quota[class]
			}
		}
	}
	for _, class := range s.easiest {
		if more := min(need, s.reach[class]-quota[class]); more > 0 {
			quota[class] += more
			need -= more
		}
	}
	return quota
}

// complete places further members of any class as long as the minimum needs them, and reports whether it is met.
func (s *evictSearch) complete(evict bool) bool {
	for before := -1; before != s.total && !s.met(); {
		before = s.total
		for _, class := range s.easiest {
			s.place(class, s.wanting(class), evict)
		}
	}
	s.most = max(s.most, s.total)
	return s.met()
}

// place places up to want members of a class in the domain. It takes the room there is, fullest node first. After that,
// if evict is set, it evicts one set of units after the other, each time the set that costs least for each member that
// it makes room for. Such a set makes room for at least one more member on one node. The eviction of a group makes other
// nodes cheaper, too.
//
// This is the greedy rule for covering problems (Chvátal, A Greedy Heuristic for the Set-Covering Problem, 1979), with
// the offers of the nodes in a heap. An offer is drawn up again when its node was touched and when it comes to the top,
// because fewer members to place and less of a budget make offers dearer.
func (s *evictSearch) place(class, want int, evict bool) {
	want -= s.fill(class, want, s.nodes)
	if !evict || want <= 0 {
		return
	}
	var offers offerHeap
	for _, n := range s.nodes {
		s.offered[n]++
		if o, ok := s.offer(class, n, want); ok {
			offers = append(offers, o)
		}
	}
	heap.Init(&offers)
	for want > 0 && len(offers) > 0 {
		o := heap.Pop(&offers).(nodeOffer)
		if o.version != s.offered[o.node] {
			continue
		}
		node := o.node
		o, ok := s.offer(class, node, want)
		if !ok {
			// What others have freed of a pool may do.
			want -= s.fill(class, want, []int{node})
			continue
		}
		if len(offers) > 0 && offers[0].compare(&o) < 0 {
			heap.Push(&offers, o)
			continue
		}
		start := len(s.trail)
		for _, u := range s.work.picks {
			s.evict(u.unit)
		}
		touched := s.touched(start)
		want -= s.fill(class, want, []int{o.node})
		want -= s.fill(class, want, touched)
		for _, n := range touched {
			s.offered[n]++
			if o, ok := s.offer(class, n, want); ok {
				heap.Push(&offers, o)
			}
		}
	}
}

// touched returns the nodes of the domain on which units were evicted since the trail had a length.
func (s *evictSearch) touched(start int) []int {
	var nodes []int
	for _, t := range s.trail[start:] {
		if t.unit < 0 {
			continue
		}
		for _, part := range s.units[t.unit].parts {
			if s.within[part.node] {
				nodes = append(nodes, part.node)
			}
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// fill places up to want members of a class on those of the nodes that have room and returns how many it placed. It
// starts where there is room for the fewest, and for the fewest of the class that is easiest to place.
func (s *evictSearch) fill(class, want int, nodes []int) int {
	want = min(want, s.classes[class].count-s.count[class])
	if want <= 0 {
		return 0
	}
	type roomy struct{ node, room, other int }
	var found []roomy
	for _, n := range nodes {
		if room := s.roomFor(class, n, want); room > 0 {
			found = append(found, roomy{node: n, room: room})
			if len(s.classes) > 1 {
				found[len(found)-1].other = s.roomFor(s.easiest[0], n, s.classes[s.easiest[0]].count)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b roomy) int {
		return cmp.Or(cmp.Compare(a.room, b.room), cmp.Compare(a.other, b.other))
	})
	placed := 0
	for _, f := range found {
		if placed == want {
			break
		}
		members := s.roomFor(class, f.node, want-placed)
		if members == 0 {
			continue
		}
		s.assign(class, f.node, members)
		placed += members
	}
	return placed
}

// freeWanted evicts the least important units until the minimum resources are free, and reports whether they are.
func (s *evictSearch) freeWanted() bool {
	if s.lacking() < 0 {
		return true
	}
	lack := make(Vector, s.dims)
	for r, amount := range s.wanted {
		lack[r] = amount - s.free[r]
	}
	var candidates []unitValue
	for _, i := range s.importance {
		c := unitValue{unit: i}
		for k := range s.units[i].parts {
			c.value += cover(s.units[i].parts[k].all, lack)
		}
		c.value /= s.weight(i, 1)
		candidates = append(candidates, c)
	}
	s.sortCandidates(candidates)
	for _, c := range candidates {
		if c.value > 0 && !s.gone[c.unit] && s.affordable(c.unit) {
			s.evict(c.unit)
			if s.lacking() < 0 {
				return true
			}
		}
	}
	return false
}
