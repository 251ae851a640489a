package sets

import (
	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/tree"
)

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

// Outline poses the problem of members of a gang without an account, for those who know better what nodes will have: of
// the nodes it has the domains only. classes numbers the classes of members, those that ask for the same with one
// number.
func (d *Divider) Outline(id gang.ID, levels gangview.Topology, need gang.Minimum, members []gang.Member,
	classes map[string]int, nodes []*v1.Node) (*Problem, error) {
	s, err := d.Divide(id, levels, need, members)
	if err != nil {
		return nil, err
	}
	c := &Problem{Division: s, nodes: nodes, classes: classes}
	c.Nodes = make([]tree.Node, len(nodes))
	for _, class := range classes {
		for len(c.Asks) <= class {
			c.Asks = append(c.Asks, nil)
		}
	}
	for i := range s.all {
		c.addSet(i)
	}
	return c, nil
}
