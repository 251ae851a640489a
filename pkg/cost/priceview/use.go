package priceview

import (
	"encoding/binary"

	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/podview"
)

// Use is what the pods on a node leave of the resources that carry its price. Free is set for nodes with GPUs only: on
// other nodes nothing is stranded.
type Use struct {
	InUse bool
	Free  price.Capacity
}

// ReadUse reads what is left of a node. claimable is what is left of GPUs that can be claimed.
func ReadUse(k *gpuview.Keys, n *Node, info fwk.NodeInfo, claimable *gpu.Inventory) Use {
	u := Use{InUse: podview.InUse(info)}
	if n.Allocatable.MilliGPU > 0 {
		u.Free = FreeHost(info)
		u.Free.MilliGPU = FreeMilliGPU(k, n, info, claimable)
	}
	return u
}

// AppendKey appends the part of the node's offer that decides how much of its price a pod is charged to the key. Memory
// is rounded.
func (n *Node) AppendKey(key []byte) []byte {
	key = appendCapacity(key, n.Allocatable)
	for _, pool := range n.gpu.Pools() {
		key = pool.Empty().AppendPriceKey(key)
	}
	return key
}

// AppendKey appends what is left to the key. Memory is rounded.
func (u *Use) AppendKey(key []byte) []byte {
	inUse := byte(0)
	if u.InUse {
		inUse = 1
	}
	return appendCapacity(append(key, inUse), u.Free)
}

func appendCapacity(key []byte, c price.Capacity) []byte {
	key = binary.AppendVarint(key, c.MilliCPU)
	key = binary.AppendVarint(key, c.MemoryMiB/podview.CoarseStep(c.MemoryMiB))
	return binary.AppendVarint(key, c.MilliGPU)
}
