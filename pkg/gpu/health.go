package gpu

import "slices"

// WithFaulty returns the inventory without the GPUs that are known to be faulty: those at the given indices, and a
// number of others whose index is not known. Where the kubelet chooses devices and their indices are not reported, the
// index of none is known. GPUs that the node has taken out of service itself are not counted twice. Of the others, free
// ones are taken first: a new pod could get them. The inventory itself is not changed.
func (inv *Inventory) WithFaulty(at []int, others int) *Inventory {
	out := inv.Clone()
	if inv.TimeSliced() {
		out.FreeReplicas = max(0, inv.FreeReplicas-max(0, len(at)+others-(len(inv.Devices)-inv.Healthy()))*inv.Replicas)
		return out
	}
	if !inv.IndexKnown {
		at, others = nil, others+len(at)
	}
	for i := range out.Devices {
		if out.Devices[i].Unhealthy && !slices.Contains(at, i) {
			others--
		}
	}
	for _, i := range at {
		if i >= 0 && i < len(out.Devices) {
			out.Devices[i].Unhealthy = true
		}
	}
	if len(out.Devices) == 0 {
		out.withoutSlicedGPUs(others)
		return out
	}
	for ; others > 0; others-- {
		freest := -1
		for i, d := range out.Devices {
			if !d.Unhealthy && (freest < 0 || d.FreeMilli > out.Devices[freest].FreeMilli) {
				freest = i
			}
		}
		if freest < 0 {
			break
		}
		out.Devices[freest].Unhealthy = true
	}
	return out
}

// withoutSlicedGPUs takes out the free slices of a number of GPUs that are all cut alike.
func (inv *Inventory) withoutSlicedGPUs(faulty int) {
	for i := range inv.Slices {
		s := &inv.Slices[i]
		if inv.SlicedGPUs > 0 {
			s.Count = max(0, s.Count-min(faulty, inv.SlicedGPUs)*((s.Total+inv.SlicedGPUs-1)/inv.SlicedGPUs))
		}
	}
}
