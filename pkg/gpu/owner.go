package gpu

const (
	// mostOwners bounds how many owners are told apart. The least are left out: they are not those that must be kept
	// within bounds.
	mostOwners = 1024
	// leastOfOwner bounds how little a pod counts of an owner to which nearly all belong.
	leastOfOwner = 1.0 / 8
)

// owners keeps one controller that makes more pods than all others together from being taken for the workload.
type owners struct {
	arrived map[string]float64
	total   float64
}

// part counts an arrival of that weight and returns how much of it is to count: so much that an owner with more than
// half of all pods counts as one with half. Pods without a controller each count for themselves.
func (o *owners) part(owner string, weight float64) float64 {
	o.total += weight
	if owner == "" {
		return 1
	}
	if o.arrived == nil {
		o.arrived = map[string]float64{}
	}
	o.arrived[owner] += weight
	if len(o.arrived) > mostOwners {
		for name, arrived := range o.arrived {
			if name != owner && arrived < o.total/mostOwners {
				delete(o.arrived, name)
			}
		}
	}
	share := o.arrived[owner] / o.total
	return min(1, max(leastOfOwner, (1-share)/share))
}

// rescale divides all weights.
func (o *owners) rescale(by float64) {
	o.total /= by
	for name := range o.arrived {
		o.arrived[name] /= by
	}
}
