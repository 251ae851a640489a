package coscheduling

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	fwk "k8s.io/kube-scheduler/framework"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/podview"
)

// minResources returns what has to be free before the gang of the PodGroup, which may be nil, is tried, in thousandths of a CPU and
// in units of everything else.
func minResources(pg *schedulingv1alpha1.PodGroup) map[v1.ResourceName]int64 {
	if pg == nil {
		return nil
	}
	return podview.Amounts(pg.Spec.MinResources)
}

// describeAmount writes an amount of a resource as users do.
func describeAmount(name string, n int64) string {
	switch v1.ResourceName(name) {
	case v1.ResourceCPU:
		return resource.NewMilliQuantity(n, resource.DecimalSI).String()
	case v1.ResourceMemory, v1.ResourceEphemeralStorage:
		return resource.NewQuantity(n, resource.BinarySI).String()
	default:
		return resource.NewQuantity(n, resource.DecimalSI).String()
	}
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

// requestedBy returns how much of a resource the pod counts for.
func requestedBy(pod fwk.PodInfo, name v1.ResourceName) int64 {
	if name == v1.ResourcePods {
		return 1
	}
	return amountIn(pod.CalculateResource().Resource, name)
}
