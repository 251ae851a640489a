package plan

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
)

// alike is members that ask for the same, with the pod of one of them.
type alike struct {
	members []gang.Member
	pod     *v1.Pod
	// now and empty are how many such members fit into what is free, and into the cluster if no pod ran there.
	now, empty int
}

// byClass returns the members by class, the one with the fewest members that fit first.
func (s *Sources) byClass(members []gang.Member) []alike {
	var all []alike
	at := map[string]int{}
	for _, m := range members {
		i, known := at[m.Class]
		if !known {
			i = len(all)
			at[m.Class], all = i, append(all, alike{pod: s.Members.Pod(m.Ref)})
		}
		all[i].members = append(all[i].members, m)
	}
	if len(all) <= 1 {
		return all
	}
	for i := range all {
		if pod := all[i].pod; pod != nil {
			key := s.Capacity.Acquire(pod)
			defer s.Capacity.Release(key) // those that follow may be of the same shape
			all[i].now, all[i].empty = s.Capacity.Slots(key)
		}
	}
	slices.SortStableFunc(all, func(a, b alike) int {
		return cmp.Or(cmp.Compare(a.now, b.now), cmp.Compare(a.empty, b.empty))
	})
	return all
}

// slotsOn returns how many members like the pod fit on each of the nodes.
func (s *Sources) slotsOn(pod *v1.Pod, nodes []string) []int {
	if pod == nil {
		return nil // it has just gone
	}
	key := s.Capacity.Acquire(pod)
	defer s.Capacity.Release(key)
	return s.Capacity.SlotsOn(key, nodes)
}
