package kubeview

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresource "k8s.io/component-helpers/resource"
	fwk "k8s.io/kube-scheduler/framework"
	schedutil "k8s.io/kubernetes/pkg/scheduler/util"

	"berth.dev/berth/pkg/price"
)

const bytesPerMiB = 1 << 20

// pricedGPUs are the extended resources that count as whole GPUs in a node's price.
var pricedGPUs = []v1.ResourceName{"nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe"}

// missingRequests stand in for requests that a pod leaves out, as the stock scheduler has it: a pod that asks for
// nothing still takes something.
var missingRequests = v1.ResourceList{
	v1.ResourceCPU:    *resource.NewMilliQuantity(schedutil.DefaultMilliCPURequest, resource.DecimalSI),
	v1.ResourceMemory: *resource.NewQuantity(schedutil.DefaultMemoryRequest, resource.BinarySI),
}

// PodCapacity returns what the pod takes of the resources that carry a node's price.
func PodCapacity(pod *v1.Pod) price.Capacity {
	requests := podresource.PodRequests(pod, podresource.PodResourcesOptions{NonMissingContainerRequests: missingRequests})
	c := price.Capacity{
		MilliCPU:  requests.Cpu().MilliValue(),
		MemoryMiB: mebibytes(requests.Memory().Value()),
	}
	for _, name := range pricedGPUs {
		if q, ok := requests[name]; ok {
			c.MilliGPU += 1000 * q.Value()
		}
	}
	return c
}

// NodeAllocatable returns what the node offers to pods of the resources that carry its price.
func NodeAllocatable(node *v1.Node) price.Capacity {
	c := price.Capacity{
		MilliCPU:  node.Status.Allocatable.Cpu().MilliValue(),
		MemoryMiB: mebibytes(node.Status.Allocatable.Memory().Value()),
	}
	for _, name := range pricedGPUs {
		if q, ok := node.Status.Allocatable[name]; ok {
			c.MilliGPU += 1000 * q.Value()
		}
	}
	return c
}

// NodeFree returns what the node still offers, assumed pods counted as there.
func NodeFree(info fwk.NodeInfo) price.Capacity {
	allocatable, requested := info.GetAllocatable(), info.GetRequested()
	c := price.Capacity{
		MilliCPU:  max(allocatable.GetMilliCPU()-requested.GetMilliCPU(), 0),
		MemoryMiB: mebibytes(max(allocatable.GetMemory()-requested.GetMemory(), 0)),
	}
	for _, name := range pricedGPUs {
		if total, ok := allocatable.GetScalarResources()[name]; ok {
			c.MilliGPU += 1000 * max(total-requested.GetScalarResources()[name], 0)
		}
	}
	return c
}

// mebibytes rounds up: a request for less than a MiB is not one for nothing.
func mebibytes(bytes int64) int64 {
	return bytes/bytesPerMiB + min(bytes%bytesPerMiB, 1)
}

// InUse says whether any pod keeps the node from being given back: one that does not belong to the node itself and is not
// already on its way out.
func InUse(info fwk.NodeInfo) bool {
	for _, p := range info.GetPods() {
		pod := p.GetPod()
		if pod.DeletionTimestamp == nil && !BelongsToNode(pod) {
			return true
		}
	}
	return false
}
