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

// Solve gives the sets domains and nodes. First it looks for places for all that is needed at once; then whole sets
// beyond that are placed, then members beyond the need of their sets. Where not all that is needed fits, the answer is
// not whole and has what does fit.
//
// It tries everything where that is little. In large trees it goes by what fits best, and takes back a bounded number
// of choices: a plan that exists can be missed, one that does not exist is never returned.
func (p *Problem) Solve() *Answer {
	s := newSearch(p, mostLooks)
	if s.whole(0, s.parts.area(Home{None, None}), func() bool { return true }) {
		s.answer.Whole = true
		(&growth{search: s}).grow(0)
		return s.answer
	}
	return p.some()
}

// Least gives what is needed domains and nodes, and nothing beyond; nil if it does not fit.
func (p *Problem) Least() *Answer {
	s := newSearch(p, leastLooks)
	if !s.whole(0, s.parts.area(Home{None, None}), func() bool { return true }) {
		return nil
	}
	s.answer.Whole = true
	return s.answer
}

// growth places what goes beyond what is needed, or what fits of it if not all does.
type growth struct {
	*search
	failed bool
}

// some places what fits of a tree that does not fit whole.
func (p *Problem) some() *Answer {
	s := &growth{search: newSearch(p, mostLooks), failed: true}
	root := &p.Sets[0]
	in := s.parts.area(Home{None, None})
	switch {
	case root.Level == None:
	case root.Held != None:
		in = s.parts.area(Home{root.Level, root.Held})
	default:
		in = s.widest(root.Level, 0, in)
	}
	s.answer.Homes[0], s.answer.Placed[0] = in.home, true
	s.fill(0, in, root.Need)
	s.grow(0)
	s.answer.Whole = root.Enough != None && s.answer.count() >= root.Enough
	return s.answer
}

// widest is the domain of the level within the area that takes the most of the members of a set and of the sets within.
func (s *growth) widest(level, set int, around area) area {
	wanted := make([]int, len(s.Asks))
	var add func(set int)
	add = func(set int) {
		for class := range wanted {
			wanted[class] += s.Sets[set].members(class)
		}
		for _, within := range s.Sets[set].Sets {
			add(within)
		}
	}
	add(set)
	best, most := area{home: Home{level, None}}, -1
	ordered, others := s.parts.within(level, around)
	for _, in := range slices.Concat(ordered, others) {
		fits := 0
		for class, n := range wanted {
			fits += min(n, s.roomIn(class, in, n))
		}
		if fits > most {
			best, most = in, fits
		}
	}
	return best
}

// grow places what goes beyond the need of a set that has its place: whole sets within, parts of sets where they count,
// and members.
func (s *growth) grow(set int) {
	of := &s.Sets[set]
	in := s.areaOf(set)
	var failed []int
	for _, within := range s.inOrder(of.Sets) {
		if s.answer.Placed[within] || slices.ContainsFunc(failed, func(i int) bool { return s.Same(i, within) }) {
			continue
		}
		if s.looks = growthLooks; !s.whole(within, in, func() bool { return true }) {
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
			s.answer.Homes[within] = in.home
			if level := s.Sets[within].Level; level != None {
				s.answer.Homes[within] = s.widest(level, within, in).home
			}
			s.grow(within)
		}
	}
	if s.answer.Placed[set] {
		s.fill(set, in, of.More)
	}
}

// areaOf is the home of a set with its nodes.
func (s *growth) areaOf(set int) area {
	home := s.answer.Homes[set]
	if home.Level != None && home.Domain == None {
		return area{home: home}
	}
	return s.parts.area(home)
}

// part places what fits of one of the sets that have no place, and returns which; None if nothing fits. It takes the
// first that makes up for what is missing, or else the one that does most for it: a set in part waits for room in its
// one domain, so no more than one does.
func (s *growth) part(sets []int, around area, missing int) int {
	chosen, home, most := None, area{}, 0
	for _, set := range sets {
		if s.answer.Placed[set] {
			continue
		}
		if in, fits := s.roomiest(set, around); min(fits, missing) > most {
			chosen, home, most = set, in, min(fits, missing)
		}
	}
	if chosen != None {
		s.answer.Homes[chosen], s.answer.Placed[chosen] = home.home, true
		s.fill(chosen, home, s.Sets[chosen].Need)
	}
	return chosen
}

// roomiest is the domain for the set that takes the most of what it needs, and how much that is.
func (s *growth) roomiest(set int, around area) (best area, most int) {
	of, areas := &s.Sets[set], []area{around}
	switch {
	case of.Level == None:
	case of.Held != None:
		areas = []area{s.parts.area(Home{of.Level, of.Held})}
	default:
		ordered, others := s.parts.within(of.Level, around)
		areas = slices.Concat(ordered, others)
	}
	for _, in := range areas {
		fits := 0
		for class, n := range of.Need {
			fits += min(n, s.roomIn(class, in, n))
		}
		if fits > most {
			best, most = in, fits
		}
	}
	return best, most
}

// fill places as many of the members as fit in the area.
func (s *growth) fill(set int, in area, members []int) {
	for _, class := range s.byHardness(members) {
		for range members[class] {
			best, fits := s.tightest(class, in)
			if !fits || s.capped(class, in.home) {
				break
			}
			s.take(set, class, best.node, in.home, 1)
		}
	}
}

// Times is by domain of its level how many copies of a set the domain takes if it takes nothing else, up to most.
func (p *Problem) Times(set, most int) []int {
	s := newSearch(p, growthLooks)
	times := make([]int, len(s.parts.domains[p.Sets[set].Level]))
	for d, nodes := range s.parts.domains[p.Sets[set].Level] {
		in := area{Home{p.Sets[set].Level, d}, nodes}
		for s.looks = growthLooks; times[d] < most && s.whole(set, in, func() bool { return true }); s.looks = growthLooks {
			times[d]++
		}
	}
	return times
}

// Within returns the homes that a set may have so that what the set around it needs fits whole in the area, if that is
// the only one there. Around is the set itself, or one that it is in.
func (p *Problem) Within(set, around int, in Home) []Home {
	s := newSearch(p, growthLooks)
	var homes []Home
	for alone := range s.areas(around, s.parts.area(in)) {
		s.looks = growthLooks
		// Found or not, nothing stays placed.
		s.whole(around, alone, func() bool {
			homes, s.looks = append(homes, s.answer.Homes[set]), 0
			return false
		})
	}
	return homes
}
