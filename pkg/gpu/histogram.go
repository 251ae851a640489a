package gpu

const (
	// redrawEvery is after how many changes at most the histogram is compared with the distribution in use. While few
	// pods run it is compared whenever their number has changed by the part of 1/redrawGrowth.
	redrawEvery, redrawGrowth = 64, 8
	// redrawDistance is the Distance by which they must differ for a new one to be worth the cold cache.
	redrawDistance = 0.03
	// podWeight is what one pod counts in a sum. Sums are of whole numbers, so that their order does not matter.
	podWeight = 1 << 16
	// othersForOne is how many pods of others one pod of a controller needs to count in full: a controller is a quarter
	// of the mix at most.
	othersForOne = 3
)

// Histogram counts the pods that run now: those with GPUs by class, and the CPU of those without. A controller is
// a quarter of the mix at most, so that one tenant's is not taken for the workload. The zero value is empty. It is not
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
	classes map[Class]int
	pods    int
}

// Add counts pods of a class in, or out where n is negative. Pods without a controller have an empty one.
func (h *Histogram) Add(c Class, controller string, n int) {
	of := h.controllers[controller]
	if of == nil {
		if h.controllers == nil {
			h.controllers = map[string]*controllerPods{}
		}
		of = &controllerPods{classes: map[Class]int{}}
		h.controllers[controller] = of
	}
	if of.classes[c] += n; of.classes[c] == 0 {
		delete(of.classes, c)
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

// Redraw returns the distribution as it is now if it is time to look and it has moved from the one in use, else nil.
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
	weights, total := map[Class]int{}, 0
	for controller, of := range h.controllers {
		counted := of.pods * podWeight
		if controller != "" {
			counted = max(podWeight, min(counted, (h.pods-of.pods)*podWeight/othersForOne))
		}
		for c, n := range of.classes {
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
