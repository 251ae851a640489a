package sets

import (
	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/tree"
)

// Outline poses the problem of those members of a gang that wait, outside of a cycle and without an account: of the
// nodes it has the domains only. classes numbers the classes of members, those that ask for the same with one number.
func (d *Divider) Outline(id gang.ID, levels gangview.Topology, need gang.Minimum, classes map[string]int,
	nodes []*v1.Node) (*tree.Problem, error) {
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
	s, err := d.Divide(id, levels, need, members)
	if err != nil {
		return nil, err
	}
	c := &Problem{Division: s, nodes: nodes, classes: classes}
	for _, class := range classes {
		for len(c.Asks) <= class {
			c.Asks = append(c.Asks, nil)
		}
	}
	for i := range s.all {
		c.addSet(i)
	}
	return &c.Problem, nil
}
