package podview

import (
	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// AmountIn returns the amount of a resource, in the unit of Amount.
func AmountIn(of fwk.Resource, name v1.ResourceName) int64 {
	switch name {
	case v1.ResourceCPU:
		return of.GetMilliCPU()
	case v1.ResourceMemory:
		return of.GetMemory()
	case v1.ResourceEphemeralStorage:
		return of.GetEphemeralStorage()
	case v1.ResourcePods:
		return int64(of.GetAllowedPodNumber())
	}
	return of.GetScalarResources()[name]
}

// Free returns how much of a resource is free on a node, in the unit of Amount. Assumed pods count; it is negative if
// pods request more than is allocatable.
func Free(n fwk.NodeInfo, name v1.ResourceName) int64 {
	has := AmountIn(n.GetAllocatable(), name)
	if name == v1.ResourcePods {
		return has - int64(len(n.GetPods()))
	}
	return has - AmountIn(n.GetRequested(), name)
}

// UsedBy returns how much of a resource the pod requests, in the unit of Amount.
func UsedBy(pod fwk.PodInfo, name v1.ResourceName) int64 {
	if name == v1.ResourcePods {
		return 1
	}
	return AmountIn(pod.CalculateResource().Resource, name)
}
