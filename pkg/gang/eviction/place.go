package eviction

import (
	"cmp"
	"slices"
)

// arrange places members until the minimum is met, and reports whether it is. Where evict is set it evicts the pods
// that stand in the way.
//
// The members to place are decided on first: those of the classes that are easiest to place, unless a role needs
// others. They are placed hardest class first, because a class that fits on few nodes has to choose before one that
// fits on many. Members that find no room are replaced by members of other classes. If that fails, the easiest class is
// placed first.
func (s *search) arrange(evict bool) bool {
	start, quota := len(s.trail), s.quota()
	hardest := slices.Clone(s.easiest)
	slices.Reverse(hardest)
	for _, order := range [][]int{hardest, s.easiest} {
		s.undo(start)
		for _, class := range order {
			s.place(class, quota[class], evict)
		}
		if s.complete(evict) || len(s.classes) < 2 {
			return s.met()
		}
	}
	return false
}

// quota returns, by class, how many members to place if there is room for all.
func (s *search) quota() []int {
	quota, need := make([]int, len(s.classes)), s.Need.Total
	take := func(class, most int) int {
		members := max(min(most, s.reach[class]-quota[class]), 0)
		quota[class] += members
		need -= members
		return members
	}
	for role, least := range s.Need.Roles {
		for _, class := range s.easiest {
			if s.classes[class].Role == role {
				least -= take(class, least)
			}
		}
	}
	for _, class := range s.easiest {
		take(class, need)
	}
	return quota
}

// complete places further members of any class as far as the minimum needs them, and reports whether it is met.
func (s *search) complete(evict bool) bool {
	for _, class := range s.easiest {
		s.place(class, s.wanting(class), evict)
	}
	s.most = max(s.most, s.total)
	return s.met()
}

// fill places up to want members of a class on those of the nodes that have room and returns how many it placed. It
// starts where there is room for the fewest, and for the fewest of the class that is easiest to place.
func (s *search) fill(class, want int, nodes []int) int {
	want = min(want, s.classes[class].Count-s.count[class])
	type roomy struct{ node, room, other int }
	var found []roomy
	for _, n := range nodes {
		if room := s.fits(class, n, want); room > 0 {
			found = append(found, roomy{n, room, s.fits(s.easiest[0], n, s.classes[s.easiest[0]].Count)})
		}
	}
	slices.SortStableFunc(found, func(a, b roomy) int {
		return cmp.Or(cmp.Compare(a.room, b.room), cmp.Compare(a.other, b.other))
	})
	placed := 0
	for _, f := range found {
		placed += s.assign(class, f.node, want-placed)
	}
	return placed
}
