package evictor

import (
	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

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

// requestedBy returns how much of a resource the pod counts for.
func requestedBy(pod fwk.PodInfo, name v1.ResourceName) int64 {
	if name == v1.ResourcePods {
		return 1
	}
	return amountIn(pod.CalculateResource().Resource, name)
}
