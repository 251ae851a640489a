package kubeview

import (
	"math"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	fwk "k8s.io/kube-scheduler/framework"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
)

// MinResources returns what has to be free before the group is tried, in thousandths of a CPU and in units of everything
// else. What is not positive asks for nothing.
func MinResources(pg *schedulingv1alpha1.PodGroup) map[v1.ResourceName]int64 {
	if pg == nil {
		return nil
	}
	var out map[v1.ResourceName]int64
	for name, q := range pg.Spec.MinResources {
		if q.Sign() <= 0 {
			continue
		}
		if out == nil {
			out = make(map[v1.ResourceName]int64, len(pg.Spec.MinResources))
		}
		out[name] = amount(name, q)
	}
	return out
}

// amount is in thousandths of a CPU or in units of anything else, and never wraps around.
func amount(name v1.ResourceName, q resource.Quantity) int64 {
	switch {
	case name != v1.ResourceCPU:
		return q.Value()
	case q.CmpInt64(math.MaxInt64/1000) >= 0:
		return math.MaxInt64
	default:
		return q.MilliValue()
	}
}

// DescribeAmount writes an amount of a resource as users do.
func DescribeAmount(name string, n int64) string {
	switch v1.ResourceName(name) {
	case v1.ResourceCPU:
		return resource.NewMilliQuantity(n, resource.DecimalSI).String()
	case v1.ResourceMemory, v1.ResourceEphemeralStorage:
		return resource.NewQuantity(n, resource.BinarySI).String()
	default:
		return resource.NewQuantity(n, resource.DecimalSI).String()
	}
}

// FreeOn returns how much of a resource the nodes have free together, with the pods that are on their way to them.
func FreeOn(nodes []fwk.NodeInfo, name v1.ResourceName) int64 {
	free := int64(0)
	for _, n := range nodes {
		left := AmountIn(n.GetAllocatable(), name)
		if name == v1.ResourcePods {
			left -= int64(len(n.GetPods()))
		} else {
			left -= AmountIn(n.GetRequested(), name)
		}
		free += max(left, 0)
	}
	return free
}

// AmountIn returns how much of a resource is in r.
func AmountIn(r fwk.Resource, name v1.ResourceName) int64 {
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

// RequestedBy returns how much of a resource the pod counts for.
func RequestedBy(pod fwk.PodInfo, name v1.ResourceName) int64 {
	if name == v1.ResourcePods {
		return 1
	}
	return AmountIn(pod.CalculateResource().Resource, name)
}
