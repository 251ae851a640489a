package evictor

import (
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/obstacle"
)

// Lack returns the resources in the gang's minResources that the cluster has too little of, nil if there is enough.
// What the gang's own members hold counts as free.
func (p *Profile) Lack(id gang.ID, nodes []fwk.NodeInfo) obstacle.Reason {
	pg := p.evictor.Members.Group(id)
	if len(minResources(pg)) == 0 {
		return nil
	}
	if m := missing(p.framework, id, pg, p.own(id, nodes), nodes); len(m.Short) > 0 {
		return m
	}
	return nil
}

// lacksAfter reports whether the cluster has too little for the gang's minResources even when the pods of the proposal
// have gone.
func (p *Profile) lacksAfter(id gang.ID, found *proposal) bool {
	pg := p.evictor.Members.Group(id)
	nodes, err := p.framework.SnapshotSharedLister().NodeInfos().List()
	if err != nil || len(minResources(pg)) == 0 {
		return false
	}
	own := p.own(id, nodes)
	for _, pod := range found.going() {
		if info, err := framework.NewPodInfo(pod); err == nil {
			own = append(own, info)
		}
	}
	return len(missing(p.framework, id, pg, own, nodes).Short) > 0
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
