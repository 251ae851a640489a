package podview

import (
	"math"
	"math/bits"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	fwk "k8s.io/kube-scheduler/framework"
)

// Amounts returns the positive resources of a list: CPU in thousandths, all others in units.
func Amounts(list v1.ResourceList) map[v1.ResourceName]int64 {
	out := make(map[v1.ResourceName]int64, len(list))
	for name, q := range list {
		if q.Sign() > 0 {
			out[name] = Amount(name, q)
		}
	}
	return out
}

// AllocatableOf returns the allocatable resources of the node, in the units of Amounts.
func AllocatableOf(node *v1.Node) map[v1.ResourceName]int64 { return Amounts(node.Status.Allocatable) }

// Amount returns CPU in thousandths and any other resource in units. It is at most math.MaxInt64, without overflow.
func Amount(name v1.ResourceName, q resource.Quantity) int64 {
	switch {
	case name != v1.ResourceCPU:
		return q.Value()
	case q.CmpInt64(math.MaxInt64/1000) >= 0:
		return math.MaxInt64
	default:
		return q.MilliValue()
	}
}

// Quantity is the inverse of Amount, in the form that users write.
func Quantity(name v1.ResourceName, amount int64) *resource.Quantity {
	switch name {
	case v1.ResourceCPU:
		return resource.NewMilliQuantity(amount, resource.DecimalSI)
	case v1.ResourceMemory, v1.ResourceEphemeralStorage:
		return resource.NewQuantity(amount, resource.BinarySI)
	}
	return resource.NewQuantity(amount, resource.DecimalSI)
}

// CoarseStep returns the step to which amounts of a resource are rounded on a node with this total, so that equal nodes
// stay equal although their memory differs by a few pages: a power of two between a 1024th and a 512th of the total, or
// 1.
func CoarseStep(total int64) int64 { return 1 << max(0, bits.Len64(uint64(max(total, 0)))-10) }

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
