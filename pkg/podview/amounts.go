package podview

import (
	"math"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
