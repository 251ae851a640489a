package ranks

import (
	"cmp"
	"slices"
)

// Member is one of a group whose members are numbered.
type Member struct {
	Rank int
	// Class is equal for members that may take each other's places.
	Class string
	// Path holds the domains of the member's place, the widest level first. All members have as many levels.
	Path []string
	// Fixed is set for a member that stays where it is.
	Fixed bool
}

const (
	// mostStarts bounds the orders that are tried where members of several classes, or some that stay, are mixed.
	mostStarts = 24
	// mostSwapped is up to how many members an order is improved by swapping two of them, and mostPasses how often.
	mostSwapped, mostPasses = 64, 8
)

// Order returns for each member the one whose place it takes, itself for those that stay. The ranks form a ring, as
// collective operations use them. A plan is better if the ring leaves a domain of the widest level less often, then one
// of the next.
//
// If all members are of one class and none is fixed, the order is the best at each level: the ring leaves each domain
// once. Else a bounded number of orders is tried, and pairs are swapped while that helps.
func Order(members []Member) []int {
	r := newRing(members)
	best := r.take(nil)
	if r.mixed() {
		r.improve(best)
		least, cost := r.fewest(), r.crossings(best)
		for _, s := range r.starts() {
			if slices.Equal(cost, least) {
				break
			}
			order := r.take(s)
			r.improve(order)
			if c := r.crossings(order); slices.Compare(c, cost) < 0 {
				best, cost = order, c
			}
		}
	}
	out := make([]int, len(members))
	for at, place := range best {
		out[r.order[at]] = place
	}
	return out
}

// Crossings returns how often the ring over the ranks leaves a domain, by level.
func Crossings(members []Member) []int {
	r := newRing(members)
	return r.crossings(r.order)
}

// Fewest returns how often the ring leaves a domain at least, by level: once for each, if there are several.
func Fewest(members []Member) []int { return newRing(members).fewest() }

// ring is the members in the order of their ranks. An order of places lists, by position in the ring, the member whose
// place is taken.
type ring struct {
	members []Member
	order   []int
	// domains numbers the domains of each member's place by level; equal names in different wider domains differ.
	domains [][]int
	levels  int
	// counts is the number of domains by level.
	counts []int
}

func newRing(members []Member) *ring {
	r := &ring{members: members, order: make([]int, len(members)), domains: make([][]int, len(members))}
	for i := range members {
		r.order[i] = i
		r.levels = len(members[i].Path)
	}
	slices.SortStableFunc(r.order, func(a, b int) int { return cmp.Compare(members[a].Rank, members[b].Rank) })
	type key struct {
		level, parent int
		name          string
	}
	r.counts = make([]int, r.levels)
	known := map[key]int{}
	for i := range members {
		parent := 0
		for level, name := range members[i].Path {
			k := key{level, parent, name}
			domain, found := known[k]
			if !found {
				domain = r.counts[level]
				known[k] = domain
				r.counts[level]++
			}
			r.domains[i] = append(r.domains[i], domain)
			parent = domain
		}
	}
	return r
}

// mixed reports whether something keeps members from taking any place.
func (r *ring) mixed() bool {
	return slices.ContainsFunc(r.members, func(m Member) bool { return m.Fixed || m.Class != r.members[0].Class })
}

func (r *ring) fewest() []int {
	least := slices.Clone(r.counts)
	for i, n := range least {
		if n == 1 {
			least[i] = 0
		}
	}
	return least
}

func (r *ring) crossings(places []int) []int {
	crossings := make([]int, r.levels)
	for at := range places {
		r.cross(places, at, crossings, 1)
	}
	return crossings
}

// cross adds n for each level at which the ring leaves a domain after a position.
func (r *ring) cross(places []int, at int, crossings []int, n int) {
	for level := r.shared(places[at], places[(at+1)%len(places)]); level < r.levels; level++ {
		crossings[level] += n
	}
}

// shared is how many levels, from the widest on, two places have in common.
func (r *ring) shared(a, b int) int {
	level := 0
	for level < r.levels && r.domains[a][level] == r.domains[b][level] {
		level++
	}
	return level
}

// start is the domains of the widest level with which to begin, and which to keep for the end.
type start struct{ first, last int }

// starts returns what to try, in the order in which to try it.
func (r *ring) starts() []*start {
	var out []*start
	if r.levels == 0 {
		return nil
	}
	// A large group is worth fewer tries: each costs more, and a domain that is left once too often matters less.
	most := max(mostStarts*mostSwapped/max(len(r.order), mostSwapped), 1)
	for first := range r.counts[0] {
		for last := range r.counts[0] {
			if (first != last || r.counts[0] == 1) && len(out) < most {
				out = append(out, &start{first: first, last: last})
			}
		}
	}
	return out
}

// take lets the members take places in the order of their ranks, each as near as possible to the one before. With a
// choice of domains, the one in which the ring goes on after these members is kept for the end.
func (r *ring) take(s *start) []int {
	pools := map[string]*pool{}
	for i := range r.members {
		m := &r.members[i]
		if m.Fixed {
			continue
		}
		if pools[m.Class] == nil {
			pools[m.Class] = &pool{}
		}
		pools[m.Class].add(i, r.domains[i])
	}
	places := make([]int, len(r.order))
	var from []int
	if last := r.order[max(len(r.order)-1, 0):]; len(last) > 0 && r.members[last[0]].Fixed {
		from = r.domains[last[0]]
	}
	anchors := r.anchors()
	for at, i := range r.order {
		place := i
		if m := &r.members[i]; !m.Fixed {
			var keep []int
			if anchor := anchors[at]; anchor >= 0 {
				keep = r.domains[anchor]
			}
			if s != nil {
				if at == 0 {
					from = []int{s.first}
				}
				if keep == nil {
					keep = []int{s.last}
				}
			}
			place = pools[m.Class].take(from, keep)
		}
		places[at] = place
		from = r.domains[place]
	}
	return places
}

// anchors returns by position the next member in the ring that stays where it is, -1 if none does.
func (r *ring) anchors() []int {
	out := make([]int, len(r.order))
	next := -1
	for range 2 {
		for at := len(r.order) - 1; at >= 0; at-- {
			out[at] = next
			if i := r.order[at]; r.members[i].Fixed {
				next = i
			}
		}
	}
	return out
}

// improve swaps pairs of members while the ring leaves fewer domains then.
func (r *ring) improve(places []int) {
	n := len(places)
	if n > mostSwapped {
		return
	}
	change, none := make([]int, r.levels), make([]int, r.levels)
	for pass := range mostPasses {
		better := false
		for a := range n {
			for b := range a {
				x, y := &r.members[places[a]], &r.members[places[b]]
				if x.Fixed || y.Fixed || x.Class != y.Class || r.shared(places[a], places[b]) == r.levels {
					continue
				}
				clear(change)
				r.around(places, a, b, change, -1)
				places[a], places[b] = places[b], places[a]
				r.around(places, a, b, change, 1)
				// Now and then, a swap that changes nothing is the way to one that does.
				if c := slices.Compare(change, none); c < 0 || c == 0 && pass%2 == 0 {
					better = better || c < 0
					continue
				}
				places[a], places[b] = places[b], places[a]
			}
		}
		if !better && pass%2 == 1 {
			return
		}
	}
}

// around adds n for each level at which the ring leaves a domain next to one of two positions.
func (r *ring) around(places []int, a, b int, crossings []int, n int) {
	length := len(places)
	steps := []int{(a + length - 1) % length, a, (b + length - 1) % length, b}
	for i, at := range steps {
		if !slices.Contains(steps[:i], at) {
			r.cross(places, at, crossings, n)
		}
	}
}

// pool is the places that members of one class may take, by domain.
type pool struct {
	domain   int
	children []*pool
	// places lists those in a narrowest domain, left counts those that are not taken.
	places []int
	left   int
}

func (p *pool) add(place int, path []int) {
	for _, domain := range path {
		p.left++
		i := slices.IndexFunc(p.children, func(c *pool) bool { return c.domain == domain })
		if i < 0 {
			i = len(p.children)
			p.children = append(p.children, &pool{domain: domain})
		}
		p = p.children[i]
	}
	p.left++
	p.places = append(p.places, place)
}

// take takes the place that shares the most with from, and of these one that shares as little as possible with keep.
func (p *pool) take(from, keep []int) int {
	for level := 0; ; level++ {
		p.left--
		if p.children == nil {
			place := p.places[0]
			p.places = p.places[1:]
			return place
		}
		var next, kept *pool
		for _, c := range p.children {
			switch {
			case c.left == 0:
			case level < len(from) && c.domain == from[level]:
				next = c
			case level < len(keep) && c.domain == keep[level]:
				kept = c
			case next == nil:
				next = c
			}
			if next != nil && level < len(from) && next.domain == from[level] {
				break
			}
		}
		if next == nil {
			next = kept
		}
		if level < len(from) && next.domain != from[level] {
			from = nil
		}
		if level < len(keep) && next.domain != keep[level] {
			keep = nil
		}
		p = next
	}
}
