package tree

import "slices"

const (
	// mostLooks bounds how many nodes are looked at before a search gives up: enough to try all that there is in a small
	// tree, and for a large one several times what it takes to place each member once.
	mostLooks = 2_000_000
	// leastLooks bounds a search for what is needed alone, which is made again and again.
	leastLooks = 400_000
	// growthLooks bounds that for one more set.
	growthLooks = 100_000
)

// Solve assigns domains and nodes to the sets. It first places all that is needed at once, then further whole sets,
// then members beyond the need of their sets. If not all that is needed fits, the answer is not whole and has what
// fits.
//
// In small trees it tries everything. In large ones it tries the best fit first and backtracks a bounded number of
// times: it may miss a plan that exists, but never returns one that does not fit.
func (p *Problem) Solve() *Answer {
	s, root := growth{search: p.place(mostLooks)}, &p.Sets[0]
	if s.failed = !s.answer.Whole; s.failed {
		in, _ := s.roomiest(0, s.parts.area(Home{None, None}), p.all(0))
		s.answer.Homes[0], s.answer.Placed[0] = in.home, true
		s.fill(0, in, root.Need)
	}
	s.grow(0)
	s.answer.Whole = !s.failed || root.Enough != None && s.answer.count() >= root.Enough
	return s.answer
}

// Least gives what is needed domains and nodes, and nothing beyond; nil if it does not fit.
func (p *Problem) Least() *Answer {
	if s := p.place(leastLooks); s.answer.Whole {
		return s.answer
	}
	return nil
}

// place looks for places for what is needed.
func (p *Problem) place(looks int) *search {
	s := newSearch(p, looks)
	s.answer.Whole = s.whole(0, s.parts.area(Home{None, None}), found)
	return s
}

// found is the end of a search.
func found() bool { return true }

// growth places what goes beyond what is needed, or what fits of it if not all does.
type growth struct {
	*search
	failed bool
}

// grow places what goes beyond the need of a set that has its place: whole sets within, parts of sets where they count,
// and members.
func (s *growth) grow(set int) {
	of := &s.Sets[set]
	in := s.parts.area(s.answer.Homes[set])
	var failed []int
	for _, within := range s.inOrder(of.Sets) {
		if s.answer.Placed[within] || slices.ContainsFunc(failed, func(i int) bool { return s.Same(i, within) }) {
			continue
		}
		if s.looks = growthLooks; !s.whole(within, in, found) {
			failed = append(failed, within)
		}
	}
	parted := None
	if missing := of.Enough - s.answer.count(); missing > 0 {
		parted = s.part(of.Sets, in, missing)
	}
	for _, within := range of.Sets {
		switch {
		case within == parted:
		case s.answer.Placed[within]:
			s.grow(within)
		case s.failed && len(s.Sets[within].Sets) > 0:
			// To tell what is missing, what fits of it is placed.
			widest, _ := s.roomiest(within, in, s.all(within))
			s.answer.Homes[within] = widest.home
			s.grow(within)
		}
	}
	if s.answer.Placed[set] {
		s.fill(set, in, of.More)
	}
}

// part places what fits of one set that is not placed, and returns which; None if nothing fits. It takes the first set
// that makes up for what is missing, or else the one that places the most. It is never more than one set, because the
// rest of its members have to wait for capacity in the same domain.
func (s *growth) part(sets []int, around area, missing int) int {
	chosen, home, most := None, area{}, 0
	for _, set := range sets {
		if s.answer.Placed[set] {
			continue
		}
		if in, fits := s.roomiest(set, around, s.Sets[set].Need); min(fits, missing) > most {
			chosen, home, most = set, in, min(fits, missing)
		}
	}
	if chosen != None {
		s.answer.Homes[chosen], s.answer.Placed[chosen] = home.home, true
		s.fill(chosen, home, s.Sets[chosen].Need)
	}
	return chosen
}

// roomiest is the domain for the set, of those within the area, that takes the most of the members, and how many these
// are.
func (s *growth) roomiest(set int, around area, members []int) (best area, most int) {
	of, areas := &s.Sets[set], []area{around}
	switch {
	case of.Level == None:
	case of.Held != None:
		areas = []area{s.parts.area(Home{of.Level, of.Held})}
	default:
		areas = s.parts.within(of.Level, around)
	}
	best, most = area{home: Home{of.Level, None}}, None
	for _, in := range areas {
		fits := 0
		for class, n := range members {
			room, _ := s.roomIn(class, in, n)
			fits += min(n, room)
		}
		if fits > most {
			best, most = in, fits
		}
	}
	return best, most
}

// all counts the members of a set and of those within, by class.
func (p *Problem) all(set int) []int {
	all := make([]int, len(p.Asks))
	for class := range all {
		all[class] = p.Sets[set].members(class)
	}
	for _, within := range p.Sets[set].Sets {
		for class, n := range p.all(within) {
			all[class] += n
		}
	}
	return all
}

// fill places as many of the members as fit in the area.
func (s *growth) fill(set int, in area, members []int) {
	for _, class := range s.byHardness(members) {
		for range members[class] {
			best, fits := s.tightest(class, in)
			if !fits {
				break
			}
			s.take(set, class, best.node, 1)
		}
	}
}

// Times is by domain of its level how many copies of a set the domain takes if it takes nothing else, up to most.
func (p *Problem) Times(set, most int) map[int]int {
	s, times := newSearch(p, growthLooks), map[int]int{}
	for _, in := range s.parts.within(p.Sets[set].Level, s.parts.area(Home{None, None})) {
		d := in.home.Domain
		for s.looks = growthLooks; times[d] < most && s.whole(set, in, found); s.looks = growthLooks {
			times[d]++
		}
	}
	return times
}
