package evictor

import (
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/obstacle"
	"berth.dev/berth/pkg/waitlist"
)

// Lack returns the resources in the gang's minResources that the cluster has too little of, nil if there is enough.
// What the gang's own members hold counts as free.
func (p *Profile) Lack(id gang.ID, nodes []fwk.NodeInfo) obstacle.Reason {
	pg := p.evictor.Members.Group(id)
	if len(waitlist.MinResources(pg)) == 0 {
		return nil
	}
	if m := waitlist.Lack(p.framework, id, pg, p.own(id, nodes), nodes); len(m.Short) > 0 {
		return m
	}
	return nil
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
