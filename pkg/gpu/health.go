package gpu

import "slices"

// WithFaulty returns the inventory without the GPUs that are known to be faulty: those at the given indices, and
// elsewhere more of which only the number is known. Where indices mean nothing, because the kubelet picks and nobody
// reports, all count as elsewhere. GPUs that the node itself has taken out of service already are not counted twice,
// and of the others free ones go first: a faulty GPU in use is no threat to a new pod, a free one is. The inventory
// itself is not changed.
func (inv *Inventory) WithFaulty(at []int, elsewhere int) *Inventory {
	out := inv.Clone()
	if inv.TimeSliced() {
		out.FreeReplicas = max(0, inv.FreeReplicas-(len(at)+elsewhere)*inv.Replicas)
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
