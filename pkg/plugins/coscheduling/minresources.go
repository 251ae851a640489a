package coscheduling

import (
	"maps"
	"slices"

	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
)

// lack says of which resources in the gang's minResources the cluster has too little free, or nothing if there is enough.
// What the gang's own members hold counts as free, and so do the pods that are gone.
func (p *Plugin) lack(id gang.ID, nodes []fwk.NodeInfo, gone []placedPod) string {
	wanted := minResources(p.shared.groups.get(id))
	if len(wanted) == 0 {
		return ""
	}
	own := p.shared.own(id, nodes)
	amounts := make([]gang.Amount, 0, len(wanted))
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if claimed(p.framework, name) {
			continue
		}
		a := gang.Amount{Resource: string(name), Wanted: wanted[name], Free: freeOn(nodes, name)}
		for _, pod := range own {
			a.Free += requestedBy(pod, name)
		}
		for _, s := range gone {
			a.Free += requestedBy(s.info, name)
		}
		amounts = append(amounts, a)
	}
	short := gang.Lacking(amounts)
	if len(short) == 0 {
		return ""
	}
	return gang.ExplainLack(id, short, describeAmount)
}

// own returns the members of the gang that the nodes hold already.
func (c *coordinator) own(id gang.ID, nodes []fwk.NodeInfo) []fwk.PodInfo {
	held := c.ledger.Nodes(id)
	if len(held) == 0 {
		return nil
	}
	var own []fwk.PodInfo
	for _, n := range nodes {
		if held[n.Node().Name] == 0 {
			continue
		}
		for _, info := range n.GetPods() {
			if c.members.id(info.GetPod()) == id {
				own = append(own, info)
			}
		}
	}
	return own
}
