package sets

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/read/numbering"
	"berth.dev/berth/pkg/gang/tree"
)

// Joining is where a member of a started gang may go.
type Joining struct {
	// Nodes are those in the domain of its gang, group or segment, all without such a domain, and none if it Begins. Why
	// describes them, or says why there are none.
	Nodes []fwk.NodeInfo
	Why   string
	// Rest is the problem of the group or segment that lacks the member, and Demand the members that it lacks; nil if
	// none does. Begins is set if no member of that part has a node, so that all that it needs has to fit.
	Rest   *Problem
	Demand gang.Demand
	Begins bool
}

// Join returns where a member of a started gang may go.
func (d *Divider) Join(id gang.ID, levels read.Topology, pod *v1.Pod, nodes []fwk.NodeInfo) (*Joining, error) {
	members := []gang.Member{read.Member(pod, read.Membership{}, d.Members.Group(id), true)}
	var need gang.Minimum
	if d.Any(id, levels) {
		members, need = d.ofStarted(id, levels, members)
	} else if len(levels.Required) == 0 {
		return &Joining{Nodes: nodes}, nil
	}
	s, err := d.Divide(id, levels, need, members)
	if err != nil {
		return nil, err
	}
	own, known := s.of[members[0].UID]
	if !known {
		return nil, read.UnknownGroup(pod, d.Members.Group(id))
	}
	j, lacks := &Joining{}, own
	for at := own; at > 0; at = s.all[at].around {
		if d.begins(id, s, at) {
			lacks, j.Begins = at, true
		}
	}
	switch whole := s.complete(lacks); {
	case j.Begins && !whole:
		j.Why = fmt.Sprintf("%s has fewer members than it needs to begin", s.name(lacks))
		return j, nil
	case whole && lacks > 0:
		d.rest(j, s, lacks, nodes)
	}
	if j.Begins {
		level := "place"
		if set := &s.all[lacks]; set.own {
			level = set.keys[len(set.keys)-1]
		}
		j.Why = fmt.Sprintf("%s needs a %s with room for all of it", s.name(lacks), level)
		return j, nil
	}
	j.Nodes, j.Why = s.beside(own, nodes)
	return j, nil
}

// begins reports whether a group without copies, or a segment, begins with several members that have to fit together,
// or with a domain that no other such group may share.
func (d *Divider) begins(id gang.ID, s *Division, at int) bool {
	set := &s.all[at]
	switch {
	case set.placed > 0 || set.lacks != nil && (set.lacks.Copies || d.Ledger.Begun(id, set.lacks)):
		return false
	case set.lacks == nil:
		return len(set.members) > 1
	}
	return set.lacks.Members() > 1 || set.alone()
}

// beside returns the nodes in the domain in which others of the set are, and says which these are.
func (s *Division) beside(own int, nodes []fwk.NodeInfo) ([]fwk.NodeInfo, string) {
	for at := own; at != tree.None; at = s.all[at].around {
		set := &s.all[at]
		if !set.own || set.held == "" {
			continue
		}
		labels := strings.Split(set.held, "\x00")
		for i, key := range set.keys {
			labels[i] = key + "=" + labels[i]
		}
		within := slices.DeleteFunc(slices.Clone(nodes), func(n fwk.NodeInfo) bool {
			return DomainOf(set.keys, n.Node()) != set.held
		})
		return within, fmt.Sprintf("the other members of %s are on nodes with %s, and this one has to be there, too",
			s.name(at), strings.Join(labels, ", "))
	}
	return nodes, ""
}

// rest poses the problem of what a set lacks, if anything.
func (d *Divider) rest(j *Joining, s *Division, at int, nodes []fwk.NodeInfo) {
	members := s.within(at)
	j.Demand = gang.Demand{Members: members, Need: gang.Minimum{Total: len(members)}}
	if lacks := s.all[at].lacks; lacks != nil {
		j.Demand.Need = gang.Minimum{Total: lacks.Members(), Tree: lacks}
	}
	if j.Demand.Need.Total == 0 {
		return
	}
	j.Rest = d.Pose(s, members, nodes)
	j.Rest.leaveAlone(at)
	for ; at > 0; at = s.all[at].around {
		around := &j.Rest.Sets[s.all[at].around]
		around.Sets, around.Least, around.Enough = []int{at}, 1, tree.None
		clear(around.Need)
		clear(around.More)
	}
}

// leaveAlone removes the domains of other such sets, if a set is to have a domain alone.
func (c *Problem) leaveAlone(at int) {
	set := &c.all[at]
	if !set.alone() {
		return
	}
	level := c.Sets[at].Level
	for i := range c.all {
		other := &c.all[i]
		taken, here := c.levels[level].index[other.held]
		if i == at || !other.alone() || !here || !slices.Equal(other.keys, set.keys) {
			continue
		}
		for n, domain := range c.Levels[level] {
			if domain == taken {
				c.Levels[level][n] = tree.None
			}
		}
	}
}

// within are the members of a set and of those within it.
func (s *Division) within(at int) []gang.Member {
	members := slices.Clone(s.all[at].members)
	for _, of := range s.all[at].sets {
		members = append(members, s.within(of)...)
	}
	return members
}

// ofStarted adds the other members without a node to the one that joins, for a gang with groups or segments, and
// returns what is still needed.
func (d *Divider) ofStarted(id gang.ID, levels read.Topology, members []gang.Member) ([]gang.Member, gang.Minimum) {
	need, others := d.Ledger.Lacking(id)
	for i := range others {
		other := d.Members.Pod(others[i].Ref)
		if other == nil || others[i].UID == members[0].UID {
			continue
		}
		if _, ranked := numbering.IndexOf(other); ranked || levels.Segment.Size == 0 {
			members = append(members, others[i])
		}
	}
	return members, need
}

// name is how messages call a set.
func (s *Division) name(at int) string {
	switch {
	case at == 0:
		return "the gang"
	case s.Size > 0:
		return "its segment"
	}
	return "group " + s.all[at].lacks.Name
}
