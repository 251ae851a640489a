package gpu

import (
	"maps"
	"math"
	"slices"
	"strings"
)

// Demand is what is known of the work to come: what it strands, in which sizes it asks for whole GPUs, and the pressure
// that it puts on each model. It is immutable but for the cache of Stranding and safe for concurrent use.
type Demand struct {
	dist *Distribution
	// capacity is that of the cluster, and resolved the distribution whose shapes name models only.
	capacity  Capacity
	resolved  *Distribution
	stranding *Stranding
	sizes     []Size
	confined  []confinement
	// pressure is the demand on each model per GPU of it, relative to the mean of all.
	pressure map[string]float64
}

// confinement is demand that only some models can serve.
type confinement struct {
	models []string
	// share is the part of the GPU demand that is confined to them for certain, see certain.
	share float64
}

// NewDemand draws up the demand of a mix on a cluster with this capacity and this number of GPUs on its largest node.
func NewDemand(d *Distribution, capacity Capacity, largest int) *Demand {
	capacity = maps.Clone(capacity)
	resolved := d.On(capacity)
	n := &Demand{
		dist: d, capacity: capacity, resolved: resolved, stranding: newStranding(resolved), sizes: d.sizesFor(largest),
	}
	_, demand := d.gpuDemand()
	pods := 0.0
	for _, p := range d.Portions {
		if p.Slices == "" {
			pods += p.Fraction
		}
	}
	n.confined = confinementsOf(resolved, demand, pods)
	n.pressure = pressure(n.confined, capacity)
	return n
}

// WithCapacity returns the same demand on a cluster that has changed.
func (d *Demand) WithCapacity(capacity Capacity, largest int) *Demand {
	if !slices.Equal(d.dist.On(capacity).Portions, d.resolved.Portions) {
		return NewDemand(d.dist, capacity, largest)
	}
	n := *d
	n.capacity = maps.Clone(capacity)
	n.pressure, n.sizes = pressure(d.confined, capacity), d.dist.sizesFor(largest)
	return &n
}

// Outgrown reports whether the capacity is of another number of models, or has changed by more than a fiftieth, since
// the demand was drawn up: a cluster that starts or is replaced arrives one node at a time.
func (d *Demand) Outgrown(now Capacity) bool {
	before := d.capacity.GPUs()
	change := now.GPUs() - before
	return len(now) != len(d.capacity) || max(change, -change)*50 > before
}

// Known reports whether enough pods are known to judge by them.
func (d *Demand) Known() bool { return d != nil && d.dist.Known() }

// Distribution is the mix behind the demand.
func (d *Demand) Distribution() *Distribution { return d.dist }

// Stranding is the packing value by this demand.
func (d *Demand) Stranding() *Stranding { return d.stranding }

// confinementsOf groups the demand by the models that it accepts.
func confinementsOf(d *Distribution, demand, pods float64) []confinement {
	if demand == 0 {
		return nil
	}
	type tally struct{ pods, demand float64 }
	tallies := map[string]tally{}
	for _, p := range d.Portions {
		if p.Models != "" && p.Slices == "" {
			t := tallies[p.Models]
			tallies[p.Models] = tally{t.pods + p.Fraction, t.demand + p.Fraction*float64(p.Count*p.Milli)}
		}
	}
	var all []confinement
	for _, models := range slices.Sorted(maps.Keys(tallies)) {
		t := tallies[models]
		share := t.demand / demand * certain(t.pods/pods, d.Pods*pods)
		if share > 0 {
			all = append(all, confinement{models: strings.Split(models, "|"), share: share})
		}
	}
	return all
}

// certain is the part of an observed fraction of n arrivals that is taken for more than chance. One pod counts nothing,
// two count a third, twenty nine tenths. Waiting for more pods costs more than it saves: meanwhile, pods that accept
// other models use up the GPUs of a model that later pods need.
func certain(fraction, n float64) float64 {
	if math.IsInf(n, 1) {
		return 1
	}
	pods := fraction * n
	return max(0, (pods-1)/(pods+1))
}

// pressure is the demand on each model in GPUs per GPU of capacity, relative to the mean: confined demand is spread
// over its models in proportion to their capacity, the rest over all.
func pressure(confined []confinement, capacity Capacity) map[string]float64 {
	total := capacity.GPUs()
	rest := 1.0
	perGPU := make(map[string]float64, len(capacity))
	for _, c := range confined {
		accepted := 0
		for model, s := range capacity {
			if c.contains(model) {
				accepted += s.GPUs
			}
		}
		rest -= c.share
		if accepted == 0 {
			continue
		}
		for model := range capacity {
			if c.contains(model) {
				perGPU[model] += c.share / float64(accepted)
			}
		}
	}
	for model := range capacity {
		perGPU[model] = (perGPU[model] + rest/float64(total)) * float64(total)
	}
	return perGPU
}

func (c *confinement) contains(model string) bool {
	return slices.ContainsFunc(c.models, func(m string) bool { return strings.EqualFold(m, model) })
}

// lowestPressure is the least pressure among the models that the request accepts.
func (d *Demand) lowestPressure(r *Request) float64 {
	lowest, found := 0.0, false
	for m, p := range d.pressure {
		if accepts(d.capacity, r, m) && (!found || p < lowest) {
			lowest, found = p, true
		}
	}
	return lowest
}

// maxPressure bounds the pressure that counts: a GPU of the scarcest model costs at most this many GPUs.
const maxPressure = 4

// scarcity is what taking one GPU of the model costs others, in GPUs: one for each unit by which the pressure on the
// model is above the lowest that the pod could choose.
func (d *Demand) scarcity(model string, lowest float64) float64 {
	p, ok := d.pressure[model]
	if !ok {
		return 0
	}
	return min(maxPressure, max(0, p-lowest))
}
