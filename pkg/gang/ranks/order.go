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

// mostTaken bounds how many places are taken to find an order, mostBegins with how many ranks it may begin.
const mostTaken, mostBegins = 1536, 24

// Order returns for each member the one whose place it takes, itself for those that stay. The ranks form a ring, as
// collective operations use them. An order is better if the ring leaves a domain of the widest level less often, then
// one of the next.
//
// The places of a class are sorted along the path of their domains, and member after member takes one of those that
// share the most with the place before it. If all members are of one class and none is fixed, the ring leaves each
// domain once. Else it matters with which rank the ring begins: some are tried, and the best order counts.
func Order(members []Member) []int {
	ring, free := byRank(members), map[string][]int{}
	for i := range members {
		if !members[i].Fixed {
			free[members[i].Class] = append(free[members[i].Class], i)
		}
	}
	for _, places := range free {
		slices.SortStableFunc(places, func(a, b int) int { return slices.Compare(members[a].Path, members[b].Path) })
	}
	begins := min(len(ring), mostBegins, mostTaken/max(len(ring), 1))
	if len(ring) > 0 && len(free[members[0].Class]) == len(ring) {
		begins = 1
	}
	var best, fewest []int
	for begin := range max(begins, 1) {
		order := take(members, slices.Concat(ring[begin:], ring[:begin]), free)
		placed := slices.Clone(members)
		for i, place := range order {
			placed[i].Path = members[place].Path
		}
		if crossings := Crossings(placed); best == nil || slices.Compare(crossings, fewest) < 0 {
			best, fewest = order, crossings
		}
	}
	return best
}

// byRank returns the members in the order of their ranks.
func byRank(members []Member) []int {
	ring := make([]int, len(members))
	for i := range ring {
		ring[i] = i
	}
	slices.SortStableFunc(ring, func(a, b int) int { return cmp.Compare(members[a].Rank, members[b].Rank) })
	return ring
}

// take lets the members of the ring take free places of their class.
func take(members []Member, ring []int, free map[string][]int) []int {
	order, left := make([]int, len(members)), map[string][]int{}
	for class, places := range free {
		left[class] = slices.Clone(places)
	}
	var before []string
	for _, i := range ring {
		order[i] = i
		if m := &members[i]; !m.Fixed {
			places := left[m.Class]
			at := nearest(members, places, before)
			order[i] = places[at]
			left[m.Class] = slices.Delete(places, at, at+1)
		}
		before = members[order[i]].Path
	}
	return order
}

// nearest is the position of a place that shares the most with the path: next to where the path would be.
func nearest(members []Member, places []int, path []string) int {
	at, _ := slices.BinarySearchFunc(places, path, func(place int, path []string) int {
		return slices.Compare(members[place].Path, path)
	})
	if at == len(places) || at > 0 && Shared(members[places[at-1]].Path, path) > Shared(members[places[at]].Path, path) {
		return at - 1
	}
	return at
}

// Shared is how many levels, from the widest on, two paths have in common.
func Shared(a, b []string) int {
	level := 0
	for level < min(len(a), len(b)) && a[level] == b[level] {
		level++
	}
	return level
}

// Crossings returns how often the ring over the ranks leaves a domain, by level.
func Crossings(members []Member) []int {
	var crossings []int
	ring := byRank(members)
	for at, i := range ring {
		path := members[i].Path
		if crossings == nil {
			crossings = make([]int, len(path))
		}
		for level := Shared(path, members[ring[(at+1)%len(ring)]].Path); level < len(path); level++ {
			crossings[level]++
		}
	}
	return crossings
}
