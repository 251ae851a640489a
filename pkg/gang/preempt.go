package gang

import (
	"slices"
	"sort"
	"time"
)

// Victim is a bound pod that may have to make room.
type Victim struct {
	UID      UID
	Node     string
	Priority int32
	Started  time.Time
	// Group is the zero ID for pods without one.
	Group ID
}

// Unit is a set of pods that are evicted together or not at all.
type Unit struct {
	Victims []Victim
	// Priority is the highest of the unit's pods.
	Priority int32
	// Group and Whole are set for the pods without which a gang has less than its minimum: they go together, and with
	// them its surplus, because what is left of a gang below its minimum is of no use to anybody.
	Group ID
	Whole bool
}

// Units divides the pods below a priority into what can be evicted on its own: single pods, the surplus members of
// gangs, and the rest of a gang as a whole. standing tells the minimum of a gang and the number of its members that
// count towards it; members that may not be evicted keep their gang from being evicted whole.
func Units(victims []Victim, below int32, standing func(ID) (minMember, settled int)) []Unit {
	var units []Unit
	members := map[ID][]Victim{}
	var groups []ID
	for _, v := range victims {
		switch {
		case v.Priority >= below:
		case v.Group == ID{}:
			units = append(units, Unit{Victims: []Victim{v}, Priority: v.Priority})
		default:
			if members[v.Group] == nil {
				groups = append(groups, v.Group)
			}
			members[v.Group] = append(members[v.Group], v)
		}
	}
	for _, id := range groups {
		all := members[id]
		sort.Slice(all, func(i, j int) bool { return lessImportant(all[i], all[j]) })
		minMember, settled := standing(id)
		surplus := min(max(settled-minMember, 0), len(all))
		for _, v := range all[:surplus] {
			units = append(units, Unit{Victims: []Victim{v}, Priority: v.Priority, Group: id})
		}
		if rest := all[surplus:]; len(rest) > 0 && len(all) == settled {
			u := Unit{Victims: rest, Group: id, Whole: true, Priority: rest[0].Priority}
			for _, v := range rest {
				u.Priority = max(u.Priority, v.Priority)
			}
			units = append(units, u)
		}
	}
	return units
}

// ByImportance returns the victims, the least important first.
func ByImportance(victims []Victim) []Victim {
	out := slices.Clone(victims)
	sort.Slice(out, func(i, j int) bool { return lessImportant(out[i], out[j]) })
	return out
}

// lessImportant orders pods: the lower priority first, then the later start.
func lessImportant(a, b Victim) bool {
	if a.Priority != b.Priority {
		return a.Priority < b.Priority
	}
	if !a.Started.Equal(b.Started) {
		return a.Started.After(b.Started)
	}
	return a.UID < b.UID
}

// Closed returns the chosen units with the surplus of every gang of which the rest is chosen.
func Closed(units []Unit, chosen map[int]bool) map[int]bool {
	out := make(map[int]bool, len(chosen))
	whole := map[ID]bool{}
	for i := range chosen {
		out[i] = true
		if units[i].Whole {
			whole[units[i].Group] = true
		}
	}
	for i := range units {
		if whole[units[i].Group] {
			out[i] = true
		}
	}
	return out
}

// Spare removes from the chosen units, one by one, those without which feasible still holds: the most important first,
// and of equally important ones the smaller first, so that few units are left rather than small ones.
func Spare(units []Unit, chosen map[int]bool, feasible func(map[int]bool) bool) map[int]bool {
	for _, i := range ByImportanceOfUnits(units) {
		if !chosen[i] {
			continue
		}
		trial := make(map[int]bool, len(chosen))
		for c := range chosen {
			if c != i {
				trial[c] = true
			}
		}
		if trial = Closed(units, trial); !trial[i] && feasible(trial) {
			chosen = trial
		}
	}
	return chosen
}

// ByImportanceOfUnits returns the indices of the units, the most important first and of equally important ones the smaller.
func ByImportanceOfUnits(units []Unit) []int {
	order := make([]int, len(units))
	for i := range order {
		order[i] = i
	}
	sort.Slice(order, func(a, b int) bool {
		ua, ub := units[order[a]], units[order[b]]
		switch {
		case ua.Priority != ub.Priority:
			return ua.Priority > ub.Priority
		case len(ua.Victims) != len(ub.Victims):
			return len(ua.Victims) < len(ub.Victims)
		default:
			return lessImportant(ub.Victims[0], ua.Victims[0])
		}
	})
	return order
}

// Price is what it costs to empty a node of the units on it: the highest priority counts most, then how many units
// there are; of equal ones the node whose units free the most elsewhere too is the cheapest.
type Price struct {
	Priority int32
	Units    int
	Frees    int
}

// Less reports whether a is cheaper than b.
func (a Price) Less(b Price) bool {
	if a.Priority != b.Priority {
		return a.Priority < b.Priority
	}
	if a.Units != b.Units {
		return a.Units < b.Units
	}
	return a.Frees > b.Frees
}

// Prices returns the price of every node that has a unit on it.
func Prices(units []Unit) map[string]Price {
	prices := map[string]Price{}
	for i := range units {
		seen := map[string]bool{}
		for _, v := range units[i].Victims {
			if seen[v.Node] {
				continue
			}
			seen[v.Node] = true
			p, known := prices[v.Node]
			if !known || units[i].Priority > p.Priority {
				p.Priority = units[i].Priority
			}
			p.Units++
			p.Frees += len(units[i].Victims)
			prices[v.Node] = p
		}
	}
	return prices
}
