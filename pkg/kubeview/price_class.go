package kubeview

import (
	"encoding/binary"

	fwk "k8s.io/kube-scheduler/framework"
)

// AppendPricedClass appends to the key what decides how much of the node's price a pod is charged: what the node offers,
// whether it is in use and, where it has GPUs that may be stranded, what is free. Memory is rounded.
func (k *GPUKeys) AppendPricedClass(key []byte, n *PricedNode, info fwk.NodeInfo) []byte {
	empty, step := n.gpu.Empty(), CoarseStep(n.Allocatable.MemoryMiB)
	inUse := int64(0)
	if InUse(info) {
		inUse = 1
	}
	for _, amount := range [...]int64{
		n.Allocatable.MilliCPU, n.Allocatable.MemoryMiB / step, n.Allocatable.MilliGPU,
		int64(empty.MemMiB), int64(empty.Replicas), inUse,
	} {
		key = binary.AppendVarint(key, amount)
	}
	if n.Allocatable.MilliGPU > 0 {
		free := FreeHost(info)
		for _, amount := range [...]int64{free.MilliCPU, free.MemoryMiB / step, k.FreeMilliGPU(n, info)} {
			key = binary.AppendVarint(key, amount)
		}
	}
	return key
}
