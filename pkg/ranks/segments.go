package ranks

import "slices"

// Segment is a run of ranks whose members share one domain.
type Segment struct {
	// Want is how many members of each class are to be placed.
	Want []int
	// Coming is how many more members the segment has when it is whole. They are taken to be of the class that it has the
	// most of.
	Coming int
	// Domain is the index of the domain in which other members of the segment are, None if there are none.
	Domain int
}

// None is the index of no domain.
const None = -1

// Fill gives segments domains, in the order in which the domains are to be filled, and returns them by segment: None
// for a segment without one. Slots bounds how many members of each class a domain takes.
//
// A segment with members that have a place stays in their domain. The others get a domain that takes all of their
// members, and those that are to come, those of lower ranks first, so that neighbors share a domain where several fit.
// If that places fewer than need members, the rest get a domain without regard to members that are to come, and then
// the domain that takes the most of their members.
func Fill(slots [][]int, segments []Segment, need int) []int {
	left := make([][]int, len(slots))
	for i := range slots {
		left[i] = slices.Clone(slots[i])
	}
	domains, placed := make([]int, len(segments)), 0
	take := func(s, domain int, whole []int) {
		domains[s] = domain
		for class, n := range segments[s].Want {
			placed += min(n, left[domain][class])
			left[domain][class] = max(left[domain][class]-whole[class], 0)
		}
	}
	for s := range segments {
		if domains[s] = segments[s].Domain; domains[s] != None {
			take(s, domains[s], segments[s].Whole())
		}
	}
	for domain := range left {
		for s := range segments {
			if whole := segments[s].Whole(); domains[s] == None && fits(whole, left[domain]) == sum(whole) {
				take(s, domain, whole)
			}
		}
	}
	for s := range segments {
		if domains[s] != None || placed >= need {
			continue
		}
		best, most := None, 0
		for domain := range left {
			if n := fits(segments[s].Want, left[domain]); n > most {
				best, most = domain, n
			}
		}
		if best != None {
			take(s, best, segments[s].Want)
		}
	}
	return domains
}

// Whole is how many members of each class the segment has when it is whole, without those that have a place.
func (s *Segment) Whole() []int {
	whole := slices.Clone(s.Want)
	if s.Coming > 0 && len(whole) > 0 {
		whole[slices.Index(whole, slices.Max(whole))] += s.Coming
	}
	return whole
}

// fits is how many of the wanted members a domain takes.
func fits(want, left []int) int {
	n := 0
	for class, wanted := range want {
		n += min(wanted, left[class])
	}
	return n
}

// Times is how many times a domain with these slots takes what is wanted.
func Times(want, slots []int) int {
	times := -1
	for class, n := range want {
		if n > 0 && (times < 0 || slots[class]/n < times) {
			times = slots[class] / n
		}
	}
	return max(times, 0)
}

func sum(counts []int) int {
	total := 0
	for _, n := range counts {
		total += n
	}
	return total
}
