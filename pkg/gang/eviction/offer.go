package eviction

import (
	"cmp"
	"slices"

	"berth.dev/berth/pkg/minheap"
)

// offer is what it costs to make room on a node for further members of a class.
type offer struct {
	node  int
	units []int
	// members is how many members there is room for afterwards.
	members int
	cost    Cost
	// started is the earliest start of a pod that has to go.
	started int64
}

// compare orders offers, the cheapest first.
func (o *offer) compare(other *offer) int {
	return cmp.Or(
		compareCosts(o.cost, o.members, other.cost, other.members),
		cmp.Compare(len(o.units)*other.members, len(other.units)*o.members),
		cmp.Compare(other.started, o.started),
		cmp.Compare(o.node, other.node),
	)
}

// place places up to want members of a class in the domain. It uses free capacity first, starting with the fullest
// node. Then, if evict is set, it accepts one offer after the other, always the one with the lowest cost per member.
//
// This is the greedy rule for covering problems (Chvátal, A Greedy Heuristic for the Set-Covering Problem, 1979). An
// offer is computed again when it comes to the top: fewer members to place and smaller budgets make it more expensive.
// The eviction of a group makes the offers of its other nodes cheaper.
func (s *search) place(class, want int, evict bool) {
	if want -= s.fill(class, want, s.nodes); !evict || want <= 0 {
		return
	}
	all := minheap.Heap[offer]{Compare: func(a, b offer) int { return a.compare(&b) }}
	for _, n := range s.nodes {
		if o, ok := s.offer(class, n, want); ok {
			all.Items = append(all.Items, o)
		}
	}
	all.Init()
	for want > 0 && all.Len() > 0 {
		node := all.Pop().node
		o, ok := s.offer(class, node, want)
		if ok && all.Len() > 0 && all.Items[0].compare(&o) < 0 {
			all.Push(o)
			continue
		}
		touched := []int{node}
		for _, u := range o.units {
			s.remove(u)
			touched = append(touched, s.nodesOf(u)...)
		}
		want -= s.assign(class, node, want)
		slices.Sort(touched)
		for _, n := range slices.Compact(touched) {
			if o, ok := s.offer(class, n, want); ok {
				all.Push(o)
			}
		}
	}
}

// offer returns the cheapest offer of a node for members of a class that lacks want members. A node on which one fits
// already makes no offer.
//
// It removes units by priority, and of one priority those that free most of what is short for each pod, until a member
// fits. Then it puts back, the most important first, those without which it still does.
func (s *search) offer(class, node, want int) (offer, bool) {
	want = min(want, s.classes[class].Count-s.count[class])
	if want <= 0 || !s.classes[class].on(node) || s.fits(class, node, 1) > 0 {
		return offer{}, false
	}
	start := len(s.trail)
	var picks []int
	for _, c := range s.candidates(class, node, want) {
		if s.remove(c.unit) {
			if picks = append(picks, c.unit); s.fits(class, node, 1) > 0 {
				break
			}
		}
	}
	if s.fits(class, node, 1) == 0 {
		s.undo(start)
		return offer{}, false
	}
	for _, unit := range slices.Backward(picks) {
		if !s.gone[unit] {
			continue
		}
		if s.do(step{unit: unit, by: -1}); s.fits(class, node, 1) == 0 {
			s.do(step{unit: unit, by: 1})
		}
	}
	o := offer{node: node, members: s.fits(class, node, want), units: s.goneSince(start)}
	s.undo(start)
	o.cost = s.costOfUnits(o.units, (want+o.members-1)/o.members)
	for i, u := range o.units {
		if started := s.units[u].started; i == 0 || started < o.started {
			o.started = started
		}
	}
	return o, true
}

// candidates returns the units whose eviction helps a member of the class on the node, the best first.
func (s *search) candidates(class, node, want int) []candidate {
	var found []candidate
	short := s.room(node)
	for r, demand := range s.classes[class].Demand {
		short[r] = max(demand-short[r], 0)
	}
	for _, part := range s.onNode[node] {
		if value := cover(part.frees, short); value > 0 && !s.gone[part.unit] {
			found = append(found, s.candidate(part.unit, value, want))
		}
	}
	s.sort(found)
	return found
}

// cover adds up, over the resources that are short, the part of the shortage that is freed.
func cover(frees, short Vector) float64 {
	sum := 0.0
	for r, amount := range short[:min(len(short), len(frees))] {
		if amount > 0 {
			sum += float64(min(frees[r], amount)) / float64(amount)
		}
	}
	return sum
}
