package coscheduling

import (
	"maps"
	"slices"

	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/dryrun"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangplan"
	"berth.dev/berth/pkg/profiles"
	"berth.dev/berth/pkg/waitlist"
)

// lack returns the resources in the gang's minResources that the cluster has too little of, nil if there is enough.
// What the gang's own members hold counts as free, and so do the pods that are gone.
func (p *Plugin) lack(id gang.ID, nodes []fwk.NodeInfo, gone []dryrun.PlacedPod) gang.Reason {
	wanted := waitlist.MinResources(p.shared.members.Group(id))
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
		for _, s := range gone {
			a.Free += requestedBy(s.Info, name)
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
func (p *Plugin) own(id gang.ID, nodes []fwk.NodeInfo) []fwk.PodInfo {
	held := p.shared.ledger.Nodes(id)
	if len(held) == 0 {
		return nil
	}
	var own []fwk.PodInfo
	for _, n := range nodes {
		if held[n.Node().Name] == 0 {
			continue
		}
		for _, info := range n.GetPods() {
			if p.shared.members.ID(info.GetPod()) == id {
				own = append(own, info)
			}
		}
	}
	return own
}
