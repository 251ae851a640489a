package gpu

const (
	// redrawEvery is the number of changes after which the histogram is compared with the distribution in use. While few
	// pods run, it is compared after changes to 1/redrawGrowth of them.
	redrawEvery, redrawGrowth = 64, 8
	// redrawDistance is the Distance from which on a new distribution is worth the cold cache.
	redrawDistance = 0.03
	// podWeight is the weight of one pod. Sums are of whole numbers, so that their order does not matter.
	podWeight = 1 << 16
	// othersForOne is how many pods of others one pod of a controller needs to count in full: a controller is a quarter
	// of the mix at most.
	othersForOne = 3
)

// Histogram counts the pods that run now: those with GPUs by shape, and the CPU of those without. A controller counts
// as a quarter of the mix at most, so that one tenant is not taken for the workload. The zero value is empty. It is not
// safe for concurrent use.
type Histogram struct {
	controllers map[string]*controllerPods
	pods        int
	// milli is the compute of the pods, cpuMilliBeside the CPU of those without GPUs.
	milli, cpuMilliBeside int64
	// changes counts what has changed since the histogram was last compared.
	changes int
}

// controllerPods are the pods of one controller.
type controllerPods struct {
	shapes map[Shape]int
	pods   int
}

// Add counts n more pods of a shape, fewer where n is negative. The controller is empty for pods without one.
func (h *Histogram) Add(c Shape, controller string, n int) {
	of := h.controllers[controller]
	if of == nil {
		if h.controllers == nil {
			h.controllers = map[string]*controllerPods{}
		}
		of = &controllerPods{shapes: map[Shape]int{}}
		h.controllers[controller] = of
	}
	if of.shapes[c] += n; of.shapes[c] == 0 {
		delete(of.shapes, c)
	}
	if of.pods += n; of.pods == 0 {
		delete(h.controllers, controller)
	}
	h.pods += n
	h.milli += int64(n * c.Count * c.Milli)
	h.changes++
}

// AddBeside counts CPU of pods without GPUs.
func (h *Histogram) AddBeside(cpuMilli int64) { h.cpuMilliBeside += cpuMilli }

// Redraw returns the distribution as it is now if enough has changed and it differs from the one in use, else nil.
func (h *Histogram) Redraw(inUse *Distribution) *Distribution {
	if h.changes < max(1, min(redrawEvery, h.pods/redrawGrowth)) {
		return nil
	}
	h.changes = 0
	now := h.Distribution()
	if now.Known() == inUse.Known() && (!now.Known() || now.Distance(inUse) < redrawDistance) {
		return nil
	}
	return now
}

// Distribution returns the histogram as it is now.
func (h *Histogram) Distribution() *Distribution {
	weights, total := map[Shape]int{}, 0
	for controller, of := range h.controllers {
		counted := of.pods * podWeight
		if controller != "" {
			counted = max(podWeight, min(counted, (h.pods-of.pods)*podWeight/othersForOne))
		}
		for c, n := range of.shapes {
			weight := n * counted / of.pods
			weights[c] += weight
			total += weight
		}
	}
	d := &Distribution{Pods: float64(total) / podWeight, Portions: make([]Portion, 0, len(weights))}
	for c, w := range weights {
		d.Portions = append(d.Portions, Portion{c, float64(w)})
	}
	d.normalize(float64(total))
	if h.milli > 0 {
		d.CPUBeside = float64(h.cpuMilliBeside) / float64(h.milli)
	}
	return d
}
