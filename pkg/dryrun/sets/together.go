package sets

import (
	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
)

// Together are members that have to share a domain, as they are in one group or segment.
type Together struct {
	// Levels are the node labels whose values they share.
	Levels []string
	// Pods are the members that were asked for, in that order, and Others how many of the other members are on each node.
	Pods   []*v1.Pod
	Others map[string]int
}

// Replace divides members of a gang that are to be replaced by the domains that they share with others. It is an error
// if it is not known in which set one of them is.
func (d *Divider) Replace(id gang.ID, levels gangview.Topology, pods []*v1.Pod) ([]Together, error) {
	members := make([]gang.Member, len(pods))
	replaced := map[gang.UID]bool{}
	for i, pod := range pods {
		members[i] = d.memberOf(id, pod)
		replaced[members[i].UID] = true
	}
	v, _ := d.Ledger.View(id)
	s, err := d.Divide(id, levels, v.Minimum, members)
	if err != nil {
		return nil, err
	}
	var all []Together
	index := map[int]int{}
	for i := range members {
		at := s.sharing(s.of[members[i].UID])
		if _, known := index[at]; !known {
			index[at] = len(all)
			all = append(all, Together{Levels: s.all[at].keys, Others: map[string]int{}})
		}
		t := &all[index[at]]
		t.Pods = append(t.Pods, pods[i])
	}
	for ref, node := range d.Ledger.Where(id) {
		if at, known := s.of[ref.UID]; known && !replaced[ref.UID] {
			for set, i := range index {
				if s.isWithin(at, set) {
					all[i].Others[node]++
				}
			}
		}
	}
	return all, nil
}

// sharing is the innermost set around one, itself included, with a domain of its own; the gang if none has.
func (s *Division) sharing(at int) int {
	for at > 0 && !s.all[at].own {
		at = s.all[at].around
	}
	return at
}

// isWithin reports whether a set is another one or within it.
func (s *Division) isWithin(at, other int) bool {
	for at > other {
		at = s.all[at].around
	}
	return at == other
}
