package sets

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/tree"
)

// JoinDomain returns on which nodes a member that comes later is in a domain of its gang, group or segment, with why.
// If no other member of that has a node, domains count in which all fits that it needs. Where they share nothing, it
// returns all nodes and does not say why.
func (d *Divider) JoinDomain(id gang.ID, levels gangview.Topology, pod *v1.Pod, nodes []fwk.NodeInfo) ([]fwk.NodeInfo,
	string, error) {
	members := []gang.Member{d.memberOf(id, pod)}
	var need gang.Minimum
	if d.Any(id, levels) {
		members, need = d.ofStarted(id, levels, members)
	} else if len(levels.Required) == 0 {
		return nodes, "", nil
	}
	s, err := d.Divide(id, levels, need, members)
	if err != nil {
		return nil, "", err
	}
	own, known := s.of[members[0].UID]
	if !known {
		return nil, "", gangview.UnknownGroup(pod, d.PodGroup(id))
	}
	begins := tree.None
	for at := own; at > 0; at = s.all[at].around {
		if s.all[at].placed == 0 {
			begins = at
		}
	}
	if begins != tree.None {
		return d.begin(s, own, begins, members, nodes)
	}
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
			return domainOf(set.keys, n.Node()) != set.held
		})
		return within, fmt.Sprintf("the other members of %s are on nodes with %s, and this one has to be there, too",
			s.name(at), strings.Join(labels, ", ")), nil
	}
	return nodes, "", nil
}

// ofStarted adds the other members of a gang with groups or segments that have no node to the one that comes, and
// returns what is needed still.
func (d *Divider) ofStarted(id gang.ID, levels gangview.Topology, members []gang.Member) ([]gang.Member,
	gang.Minimum) {
	held := d.Ledger.Where(id)
	settled := map[string]int{}
	for _, ref := range d.Ledger.Members(id) {
		other := d.Pod(ref)
		switch {
		case other == nil || ref.UID == members[0].UID:
		case held[ref] != "":
			settled[gangview.Role(other, d.PodGroup(id))]++
		default:
			if _, ranked := gangview.IndexOf(other); ranked || levels.Segment.Size == 0 {
				members = append(members, d.memberOf(id, other))
			}
		}
	}
	v, _ := d.Ledger.View(id)
	return members, v.Minimum.Without(len(held), func(role string) int { return settled[role] })
}

// Waiting are the members of a gang that may be placed, as plans need them.
func (d *Divider) Waiting(id gang.ID) []gang.Member {
	var members []gang.Member
	placed := d.Ledger.Where(id)
	for _, ref := range d.Ledger.Members(id) {
		pod := d.Pod(ref)
		if pod == nil || placed[ref] != "" {
			continue
		}
		if m := d.memberOf(id, pod); m.State == gang.Pending {
			members = append(members, m)
		}
	}
	return members
}

// memberOf reads a member as plans need it.
func (d *Divider) memberOf(id gang.ID, pod *v1.Pod) gang.Member {
	return gangview.Member(pod, gangview.Membership{}, d.PodGroup(id), true)
}

// begin returns the nodes for a member with which a set begins, the set itself or one around it: those of homes in
// which all of it fits.
func (d *Divider) begin(s *Division, own, begins int, members []gang.Member, nodes []fwk.NodeInfo) ([]fwk.NodeInfo,
	string, error) {
	if !s.complete(begins) {
		return nil, fmt.Sprintf("%s has fewer members than it needs to begin", s.name(begins)), nil
	}
	c := d.Pose(s, members, nodes)
	in := tree.Home{Level: tree.None, Domain: tree.None}
	for at := s.all[begins].around; at != tree.None; at = s.all[at].around {
		if set := &c.Sets[at]; set.Held != tree.None {
			in = tree.Home{Level: set.Level, Domain: set.Held}
			break
		}
	}
	allowed := map[int]bool{}
	for _, home := range c.Within(own, begins, in) {
		for _, n := range c.NodesOf(home) {
			allowed[n] = true
		}
	}
	var within []fwk.NodeInfo
	for i, n := range nodes {
		if allowed[i] {
			within = append(within, n)
		}
	}
	level := "place"
	if set := &s.all[begins]; set.own {
		level = set.keys[len(set.keys)-1]
	}
	return within, fmt.Sprintf("%s needs a %s with room for all of it", s.name(begins), level), nil
}

// name is how messages call a set.
func (s *Division) name(at int) string {
	switch {
	case at == 0:
		return "the gang"
	case s.Size > 0:
		return "its segment"
	}
	return "group " + s.all[at].name
}
