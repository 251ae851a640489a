package gpu

import "slices"

// WithFaulty returns the inventory without the GPUs that are known to be faulty: those at the given indices, and
// elsewhere more, known only by their number. Where indices mean nothing, because the kubelet picks and no one reports,
// all count as elsewhere. GPUs that the node itself has taken out of service already are not counted twice, and of the
// others free ones go first: a faulty GPU in use is no threat to a new pod, a free one is. The inventory itself is not
// changed.
func (inv *Inventory) WithFaulty(at []int, elsewhere int) *Inventory {
	out := inv.Clone()
	if inv.TimeSliced() {
		out.FreeReplicas = max(0, inv.FreeReplicas-max(0, len(at)+elsewhere-unhealthy(inv.Devices))*inv.Replicas)
		return out
	}
	if !inv.IndexKnown {
		at, elsewhere = nil, elsewhere+len(at)
	}
	for i := range out.Devices {
		if out.Devices[i].Unhealthy && !slices.Contains(at, i) {
			elsewhere--
		}
	}
	for _, i := range at {
		if i >= 0 && i < len(out.Devices) {
			out.Devices[i].Unhealthy = true
		}
	}
	if len(out.Devices) == 0 {
		out.withoutSlicedGPUs(elsewhere)
		return out
	}
	for ; elsewhere > 0; elsewhere-- {
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

func unhealthy(devices []Device) int {
	n := 0
	for _, d := range devices {
		if d.Unhealthy {
			n++
		}
	}
	return n
}
