package evictor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/obstacle"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process"
)

// minResources returns what has to be free before the gang of the PodGroup, which may be nil, is tried, in thousandths
// of a CPU and in units of everything else.
func minResources(pg *schedulingv1alpha1.PodGroup) map[v1.ResourceName]int64 {
	if pg == nil {
		return nil
	}
	return podview.Amounts(pg.Spec.MinResources)
}

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
	m, wanted := Missing{Of: id}, minResources(p.evictor.Members.Group(id))
	var counted []fwk.PodInfo
	if len(wanted) > 0 {
		counted = p.own(id, nodes)
	}
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
			free += requestedBy(pod, name)
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
		left := amountIn(n.GetAllocatable(), name)
		if name == v1.ResourcePods {
			left -= int64(len(n.GetPods()))
		} else {
			left -= amountIn(n.GetRequested(), name)
		}
		free += max(left, 0)
	}
	return free
}

// amountIn returns how much of a resource is in r.
func amountIn(r fwk.Resource, name v1.ResourceName) int64 {
	switch name {
	case v1.ResourceCPU:
		return r.GetMilliCPU()
	case v1.ResourceMemory:
		return r.GetMemory()
	case v1.ResourceEphemeralStorage:
		return r.GetEphemeralStorage()
	case v1.ResourcePods:
		return int64(r.GetAllowedPodNumber())
	default:
		return r.GetScalarResources()[name]
	}
}

// requestedBy returns how much of a resource the pod counts for, in the units of minResources.
func requestedBy(pod fwk.PodInfo, name v1.ResourceName) int64 {
	if name == v1.ResourcePods {
		return 1
	}
	return amountIn(pod.CalculateResource().Resource, name)
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
