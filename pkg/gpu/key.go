package gpu

import "encoding/binary"

// AppendKey appends all that the inventory says to the key: two inventories with equal keys serve any request alike.
func (inv *Inventory) AppendKey(key []byte) []byte {
	key = append(key, byte(inv.Mode), byte(inv.Agent),
		bit(inv.IndexKnown)|bit(inv.Links != nil)<<1|bit(inv.InUse)<<2|bit(inv.WholeInUse)<<3|bit(inv.SharesInUse)<<4)
	for _, s := range [...]string{inv.Resource, inv.Model, inv.Leaving} {
		key = append(append(key, s...), 0)
	}
	for _, n := range [...]int64{
		int64(inv.Generation), int64(inv.MemMiB), int64(inv.Replicas), int64(inv.FreeReplicas),
		inv.FreeCPUMilli, inv.CPUMilli, int64(len(inv.Devices)), int64(len(inv.Slices)), int64(inv.SlicedGPUs),
	} {
		key = binary.AppendVarint(key, n)
	}
	for _, d := range inv.Devices {
		key = append(binary.AppendVarint(binary.AppendVarint(key, int64(d.FreeMilli)), int64(d.FreeMemMiB)), bit(d.Unhealthy))
		key = binary.AppendVarint(binary.AppendVarint(key, int64(d.tasksLeft())), int64(d.MemMiB))
	}
	for _, s := range inv.Slices {
		key = append(append(key, s.Resource...), 0)
		for _, n := range [...]int{s.Count, s.Milli, s.Total, s.Profile.Compute, s.Profile.Memory, s.Profile.MemorySlices,
			s.Profile.MemMiB, s.Replicas} {
			key = binary.AppendVarint(key, int64(n))
		}
		key = append(key, bit(s.Profile.Alone))
	}
	if inv.Links != nil {
		key = inv.Links.appendKey(key)
	}
	return key
}

// AppendPriceKey appends what decides which part of the node's GPUs a request takes to the key.
func (inv *Inventory) AppendPriceKey(key []byte) []byte {
	key = append(append(key, inv.Resource...), 0)
	key = binary.AppendVarint(binary.AppendVarint(key, int64(inv.MemMiB)), int64(inv.Replicas))
	for i := range inv.Slices {
		s := &inv.Slices[i]
		key = binary.AppendVarint(append(append(key, s.Resource...), 0), int64(s.Replicas))
		key = binary.AppendVarint(key, int64(s.takenMilli(max(1, s.Replicas))))
	}
	for i := range inv.Devices {
		if inv.unlike() {
			key = binary.AppendVarint(key, int64(inv.Devices[i].MemMiB))
		}
	}
	return append(key, 0)
}

func (l *Links) appendKey(key []byte) []byte {
	key = append(binary.AppendVarint(key, int64(l.n)), bit(l.uniform))
	if l.uniform {
		return key
	}
	for _, p := range l.pair {
		key = append(key, byte(p.Score), bit(p.NVLink))
	}
	return key
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}
