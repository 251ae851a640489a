package priceview

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresource "k8s.io/component-helpers/resource"
	fwk "k8s.io/kube-scheduler/framework"
	schedutil "k8s.io/kubernetes/pkg/scheduler/util"

	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/podview"
)

const bytesPerMiB = 1 << 20

// missingRequests are used for requests that a pod leaves out, as in the stock scheduler.
var missingRequests = v1.ResourceList{
	v1.ResourceCPU:    *resource.NewMilliQuantity(schedutil.DefaultMilliCPURequest, resource.DecimalSI),
	v1.ResourceMemory: *resource.NewQuantity(schedutil.DefaultMemoryRequest, resource.BinarySI),
}

// Pod is what a pod asks for of the resources that carry a node's price.
type Pod struct {
	host price.Capacity
	gpu  gpuview.Request
}

// ReadPod reads a pod's requests. A request for GPUs that cannot be read counts as none: the plugin that places GPUs
// rejects the pod.
func ReadPod(k *gpuview.Keys, pod *v1.Pod) Pod {
	requests := podview.Requests(pod)
	if leavesOut(pod) {
		requests = podresource.PodRequests(pod, podresource.PodResourcesOptions{NonMissingContainerRequests: missingRequests})
	}
	p := Pod{host: price.Capacity{
		MilliCPU:  requests.Cpu().MilliValue(),
		MemoryMiB: mebibytes(requests.Memory().Value()),
	}}
	if k.MayUseGPU(pod) {
		if r, err := k.PodGPURequest(pod); err == nil {
			p.gpu = r
		}
	}
	return p
}

// leavesOut reports whether a container of the pod does not say how much CPU or memory it takes.
func leavesOut(pod *v1.Pod) bool {
	for _, containers := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			requests := containers[i].Resources.Requests
			_, cpu := requests[v1.ResourceCPU]
			if _, memory := requests[v1.ResourceMemory]; !cpu || !memory {
				return true
			}
		}
	}
	return false
}

// WithGPUs is the pod with the GPUs that it claims.
func (p *Pod) WithGPUs(claimed *gpu.Request) Pod {
	out := *p
	out.gpu.Count, out.gpu.Milli, out.gpu.Slices = claimed.Count, claimed.Milli, claimed.Slices
	return out
}

// WantsGPU says whether the pod asks for GPUs or a part of one.
func (p *Pod) WantsGPU() bool { return p.gpu.WantsGPU() }

// Signature returns a value that encodes alike for pods that ask alike.
func (p *Pod) Signature() any {
	if p.gpu.AsksNothing() {
		return p.host
	}
	return struct {
		Host price.Capacity
		GPU  gpu.Request
	}{p.host, p.gpu.Request}
}

// Node is what a node offers of the resources that carry its price, before any pod is counted.
type Node struct {
	Allocatable price.Capacity
	gpu         *gpuview.Node
}

// GPUNode is the node with the GPUs that it offers.
func (n *Node) GPUNode() *gpuview.Node { return n.gpu }

// WithGPUs is the node with other GPUs: those that can be claimed there.
func (n *Node) WithGPUs(claimable *gpuview.Node) Node {
	out := *n
	out.gpu = claimable
	out.Allocatable.MilliGPU = offeredMilli(claimable.Empty())
	return out
}

func offeredMilli(inv *gpu.Inventory) int64 {
	milli := int64(0)
	for _, d := range inv.Devices {
		milli += int64(d.FreeMilli)
	}
	for _, s := range inv.Slices {
		milli += int64(s.Count * s.Milli)
	}
	return milli
}

// ReadNode reads what a node offers.
func ReadNode(k *gpuview.Keys, node *v1.Node) Node {
	n := Node{Allocatable: price.Capacity{
		MilliCPU:  node.Status.Allocatable.Cpu().MilliValue(),
		MemoryMiB: mebibytes(node.Status.Allocatable.Memory().Value()),
	}}
	n.gpu, _ = k.ReadGPUNode(node)
	n.Allocatable.MilliGPU = int64(n.gpu.GPUs()) * gpu.WholeMilli
	return n
}

// Request returns what the pod takes on this node: how much of a GPU a share by memory, a time slice or a hardware
// slice is depends on it.
func (n *Node) Request(p *Pod) price.Capacity {
	c := p.host
	empty := n.gpu.For(&p.gpu.Request).Empty()
	if sliced := empty.SlicedMilli(&p.gpu.Request); sliced > 0 {
		c.MilliGPU = int64(sliced)
		return c
	}
	c.MilliGPU = int64(p.gpu.TotalMilli(empty.MemoryServing(&p.gpu.Request)))
	if empty.TimeSliced() && c.MilliGPU > 0 {
		c.MilliGPU = max(1, c.MilliGPU/int64(empty.Replicas))
	}
	return c
}

// FreeHost returns the CPU and memory that are free on the node.
func FreeHost(info fwk.NodeInfo) price.Capacity {
	allocatable, requested := info.GetAllocatable(), info.GetRequested()
	return price.Capacity{
		MilliCPU:  max(allocatable.GetMilliCPU()-requested.GetMilliCPU(), 0),
		MemoryMiB: mebibytes(max(allocatable.GetMemory()-requested.GetMemory(), 0)),
	}
}

// FreeMilliGPU returns how much GPU is free on the node. On a node that shares GPUs it reads every pod. claimable is
// what is left of GPUs that can be claimed, nil for other nodes.
func FreeMilliGPU(k *gpuview.Keys, n *Node, info fwk.NodeInfo, claimable *gpu.Inventory) int64 {
	free := int64(0)
	for i, pool := range n.gpu.Pools() {
		inv := claimable
		if i > 0 || inv == nil {
			inv = k.Inventory(pool, info, nil, "")
		}
		if inv.TimeSliced() {
			free += int64(inv.FreeReplicas) * gpu.WholeMilli / int64(inv.Replicas)
		} else {
			free += int64(inv.FreeMilli())
		}
		free += int64(inv.FreeSlicedMilli())
	}
	return free
}

// mebibytes rounds up: a request for less than a MiB is not one for nothing.
func mebibytes(bytes int64) int64 {
	return bytes/bytesPerMiB + min(bytes%bytesPerMiB, 1)
}
