package preempt

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/obstacle"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process"
)

// Missing is the resources that a gang wants to be free and that are not.
type Missing struct {
	Of    gang.ID
	Short []Shortage
}

// Shortage is how much of one resource a gang wants to be free, and how much is.
type Shortage struct {
	Resource     v1.ResourceName
	Wanted, Free int64
}

// Lack returns the resources in the gang's minResources that the cluster has too little of, nil if there is enough.
func (p *Profile) Lack(id gang.ID, nodes []fwk.NodeInfo) obstacle.Reason {
	if m := p.missing(id, nodes, nil); len(m.Short) > 0 {
		return m
	}
	return nil
}

// missing returns the resources in the gang's minResources that the nodes have too little of; Short is empty if there
// is enough. What the gang's own members and the pods that go hold counts as free, and what a device class hands out is
// not looked at.
func (p *Profile) missing(id gang.ID, nodes []fwk.NodeInfo, goes []*v1.Pod) Missing {
	m, pg := Missing{Of: id}, p.evictor.Members.Group(id)
	if pg == nil || len(pg.Spec.MinResources) == 0 {
		return m
	}
	wanted, counted := podview.Amounts(pg.Spec.MinResources), p.own(id, nodes)
	for _, pod := range goes {
		if info, err := framework.NewPodInfo(pod); err == nil {
			counted = append(counted, info)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if process.Claimed(p.framework, name) {
			continue
		}
		free := freeOn(nodes, name)
		for _, pod := range counted {
			free += podview.UsedBy(pod, name)
		}
		if free < wanted[name] {
			m.Short = append(m.Short, Shortage{name, wanted[name], free})
		}
	}
	return m
}

// own returns the members of the gang that the nodes hold already.
func (p *Profile) own(id gang.ID, nodes []fwk.NodeInfo) (own []fwk.PodInfo) {
	held := p.evictor.Ledger.Nodes(id)
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

// freeOn returns how much of a resource the nodes have free together, with the pods that are on their way to them.
func freeOn(nodes []fwk.NodeInfo, name v1.ResourceName) int64 {
	free := int64(0)
	for _, n := range nodes {
		free += max(podview.Free(n, name), 0)
	}
	return free
}

// String says how much of each is wanted, and how much is free.
func (m Missing) String() string {
	parts := make([]string, len(m.Short))
	for i, s := range m.Short {
		parts[i] = fmt.Sprintf("%s %s, the cluster has %s free",
			s.Resource, podview.Quantity(s.Resource, s.Wanted), podview.Quantity(s.Resource, s.Free))
	}
	return fmt.Sprintf("gang %s needs minResources %s", m.Of, strings.Join(parts, "; "))
}

// Kind names the resources.
func (m Missing) Kind() string {
	names := make([]string, len(m.Short))
	for i, s := range m.Short {
		names[i] = string(s.Resource)
	}
	return "gang needs minResources " + strings.Join(names, ", ")
}
