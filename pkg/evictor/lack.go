package evictor

import (
	"maps"
	"slices"

	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangplan"
	"berth.dev/berth/pkg/obstacle"
	"berth.dev/berth/pkg/profiles"
	"berth.dev/berth/pkg/waitlist"
)

// Lack returns the resources in the gang's minResources that the cluster has too little of, nil if there is enough.
// What the gang's own members hold counts as free.
func (p *Profile) Lack(id gang.ID, nodes []fwk.NodeInfo) obstacle.Reason {
	wanted := waitlist.MinResources(p.evictor.Members.Group(id))
	if len(wanted) == 0 {
		return nil
	}
	own := p.own(id, nodes)
	amounts := make([]gangplan.Amount, 0, len(wanted))
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if profiles.Claimed(p.framework, name) {
			continue
		}
		a := gangplan.Amount{Resource: string(name), Wanted: wanted[name], Free: freeOn(nodes, name)}
		for _, pod := range own {
			a.Free += requestedBy(pod, name)
		}
		amounts = append(amounts, a)
	}
	short := gangplan.Lacking(amounts)
	if len(short) == 0 {
		return nil
	}
	return waitlist.Missing{Of: id, Short: short}
}

// own returns the members of the gang that the nodes hold already.
func (p *Profile) own(id gang.ID, nodes []fwk.NodeInfo) []fwk.PodInfo {
	held := p.evictor.Ledger.Nodes(id)
	if len(held) == 0 {
		return nil
	}
	var own []fwk.PodInfo
	for _, n := range nodes {
		if held[n.Node().Name] == 0 {
			continue
		}
		for _, info := range n.GetPods() {
			if p.evictor.Members.ID(info.GetPod()) == id {
				own = append(own, info)
			}
		}
	}
	return own
}
