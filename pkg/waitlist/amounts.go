package waitlist

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangplan"
	"berth.dev/berth/pkg/obstacle"
	"berth.dev/berth/pkg/profiles"
)

// Lack returns the resources in the minResources of the gang's PodGroup that the nodes have too little of, nil if there
// is enough. What the gang's own members hold counts as free, and what a device class hands out is not looked at.
func Lack(profile framework.Framework, id gang.ID, pg *schedulingv1alpha1.PodGroup, own []fwk.PodInfo,
	nodes []fwk.NodeInfo) obstacle.Reason {
	wanted := MinResources(pg)
	var amounts []gangplan.Amount
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if profiles.Claimed(profile, name) {
			continue
		}
		a := gangplan.Amount{Resource: string(name), Wanted: wanted[name], Free: freeOn(nodes, name)}
		for _, pod := range own {
			a.Free += RequestedBy(pod, name)
		}
		amounts = append(amounts, a)
	}
	short := gangplan.Lacking(amounts)
	if len(short) == 0 {
		return nil
	}
	return Missing{Of: id, Short: short}
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

// RequestedBy returns how much of a resource the pod counts for, in the units of MinResources.
func RequestedBy(pod fwk.PodInfo, name v1.ResourceName) int64 {
	if name == v1.ResourcePods {
		return 1
	}
	return amountIn(pod.CalculateResource().Resource, name)
}
