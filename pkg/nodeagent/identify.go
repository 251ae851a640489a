package nodeagent

import (
	"strconv"
	"strings"
)

// identifier finds the GPU behind the name that a device plugin gives a device. Known forms, U being the UUID of a GPU
// and M that of a hardware slice:
//
//	U, M                NVIDIA's plugin
//	U::2, M::2          the same with time-slicing or MPS: one name for each replica
//	U-2                 HAMi's plugin: one name for each split
//	MIG-U/1/0           slices before driver 470
//	nvidia0, nvidia0/…  GKE's plugin: the device file of the GPU, then the slice or the client that shares it
type identifier struct {
	byUUID  map[string]int
	byMinor map[int]int
}

func newIdentifier(h *hardware) *identifier {
	d := &identifier{byUUID: map[string]int{}, byMinor: map[int]int{}}
	indices := map[int]bool{}
	for _, gpu := range h.gpus {
		d.byUUID[gpu.UUID] = gpu.Index
		indices[gpu.Index] = true
		if minor, ok := h.minors[gpu.UUID]; ok {
			d.byMinor[minor] = gpu.Index
		}
	}
	for uuid, index := range h.slices {
		if indices[index] {
			d.byUUID[uuid] = index
		}
	}
	return d
}

// index is that of the device's GPU; false where the name means none that is known.
func (d *identifier) index(id string) (int, bool) {
	id, _, _ = strings.Cut(id, "::")
	if index, ok := d.byUUID[id]; ok {
		return index, true
	}
	if rest, ok := strings.CutPrefix(id, "nvidia"); ok {
		rest, _, _ = strings.Cut(rest, "/")
		minor, err := strconv.Atoi(rest)
		if err != nil {
			return 0, false
		}
		index, ok := d.byMinor[minor]
		return index, ok
	}
	id, _, _ = strings.Cut(strings.TrimPrefix(id, "MIG-GPU-"), "/")
	id = "GPU-" + strings.TrimPrefix(id, "GPU-")
	if index, ok := d.byUUID[id]; ok {
		return index, true
	}
	if split := strings.LastIndexByte(id, '-'); split > 0 {
		index, ok := d.byUUID[id[:split]]
		return index, ok
	}
	return 0, false
}
