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

// shortfall is the resources in the minResources of a gang that exceed what is free in the cluster.
type shortfall struct {
	gang      gang.ID
	resources []resourceShortfall
}

type resourceShortfall struct {
	name         v1.ResourceName
	wanted, free int64
}

// Shortfall returns the resources in the gang's minResources that exceed what is free on the nodes, nil if none does.
func (p *Profile) Shortfall(id gang.ID, nodes []fwk.NodeInfo) obstacle.Reason {
	if s := p.shortfall(id, nodes, nil); len(s.resources) > 0 {
		return s
	}
	return nil
}

// shortfall counts what the gang's own members and the evicted pods use as free, and ignores resources that a
// DeviceClass serves. Assumed pods count as pods of their node.
func (p *Profile) shortfall(id gang.ID, nodes []fwk.NodeInfo, evicted []*v1.Pod) shortfall {
	s, pg := shortfall{gang: id}, p.evictor.Members.Group(id)
	if pg == nil || len(pg.Spec.MinResources) == 0 {
		return s
	}
	wanted, occupied := podview.Amounts(pg.Spec.MinResources), p.evictor.Ledger.Nodes(id)
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if process.Claimed(p.framework, name) {
			continue
		}
		free := int64(0)
		for _, n := range nodes {
			if free += max(podview.Free(n, name), 0); occupied[n.Node().Name] == 0 {
				continue
			}
			for _, info := range n.GetPods() {
				if p.evictor.Members.ID(info.GetPod()) == id {
					free += podview.UsedBy(info, name)
				}
			}
		}
		for _, pod := range evicted {
			if info, err := framework.NewPodInfo(pod); err == nil {
				free += podview.UsedBy(info, name)
			}
		}
		if free < wanted[name] {
			s.resources = append(s.resources, resourceShortfall{name, wanted[name], free})
		}
	}
	return s
}

// String implements obstacle.Reason.
func (s shortfall) String() string {
	parts := make([]string, len(s.resources))
	for i, r := range s.resources {
		parts[i] = fmt.Sprintf("%s %s, the cluster has %s free",
			r.name, podview.Quantity(r.name, r.wanted), podview.Quantity(r.name, r.free))
	}
	return fmt.Sprintf("gang %s needs minResources %s", s.gang, strings.Join(parts, "; "))
}

// Kind names the resources.
func (s shortfall) Kind() string {
	names := make([]string, len(s.resources))
	for i, r := range s.resources {
		names[i] = string(r.name)
	}
	return "gang needs minResources " + strings.Join(names, ", ")
}
