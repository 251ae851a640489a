package coscheduling

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/dryrun"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/profiles"
)

// lack returns the resources in the gang's minResources of which the cluster has too little free, nil if there is
// enough. What the gang's own members hold counts as free, and so do the pods that are gone.
func (p *Plugin) lack(id gang.ID, nodes []fwk.NodeInfo, gone []dryrun.PlacedPod) gang.Reason {
	wanted := minResources(p.shared.groups.get(id))
	if len(wanted) == 0 {
		return nil
	}
	own := p.own(id, nodes)
	amounts := make([]gang.Amount, 0, len(wanted))
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if profiles.Claimed(p.framework, name) {
			continue
		}
		a := gang.Amount{Resource: string(name), Wanted: wanted[name], Free: freeOn(nodes, name)}
		for _, pod := range own {
			a.Free += requestedBy(pod, name)
		}
		for _, s := range gone {
			a.Free += requestedBy(s.Info, name)
		}
		amounts = append(amounts, a)
	}
	short := gang.Lacking(amounts)
	if len(short) == 0 {
		return nil
	}
	return missing{id, short}
}

// missing is the resources that a gang wants to be free and of which too little is.
type missing struct {
	of    gang.ID
	short []gang.Amount
}

// String says how much of each is wanted, and how much is free.
func (m missing) String() string {
	parts := make([]string, len(m.short))
	for i, a := range m.short {
		parts[i] = fmt.Sprintf("%s %s, the cluster has %s free",
			a.Resource, describeAmount(a.Resource, a.Wanted), describeAmount(a.Resource, a.Free))
	}
	return fmt.Sprintf("gang %s needs minResources %s", m.of, strings.Join(parts, "; "))
}

// Kind names the resources.
func (m missing) Kind() string {
	names := make([]string, len(m.short))
	for i, a := range m.short {
		names[i] = a.Resource
	}
	return "gang needs minResources " + strings.Join(names, ", ")
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
			if p.shared.members.id(info.GetPod()) == id {
				own = append(own, info)
			}
		}
	}
	return own
}
