package gpu

import (
	"maps"
	"math"
	"slices"
	"strings"

	"berth.dev/berth/pkg/gpu/mix"
)

// Demand is what is known of the work that comes: what it strands, in which sizes it asks for whole GPUs, and how it
// presses on the models. It is immutable but for the cache of Stranding and safe for concurrent use.
type Demand struct {
	dist *mix.Distribution
	// capacity is that of the cluster, and resolved the distribution in whose classes only models count.
	capacity  mix.Capacity
	resolved  *mix.Distribution
	stranding *Stranding
	sizes     []mix.Size
	confined  []confinement
	// meanGPUs is the mean demand of a GPU pod, in GPUs.
	meanGPUs float64
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
func NewDemand(d *mix.Distribution, capacity mix.Capacity, largest int) *Demand {
	capacity = maps.Clone(capacity)
	resolved := d.On(capacity)
	n := &Demand{
		dist: d, capacity: capacity, resolved: resolved, stranding: newStranding(resolved), sizes: d.Sizes(largest),
	}
	_, demand := d.GPUDemand()
	pods := 0.0
	for _, p := range d.Portions {
		if p.Count > 0 && p.Slices == "" {
			pods += p.Fraction
		}
	}
	if pods > 0 {
		n.meanGPUs = demand / pods / WholeMilli
	}
	n.confined = confinementsOf(resolved, demand, pods)
	n.pressure = pressure(n.confined, capacity)
	return n
}

// WithCapacity returns the same demand on a cluster that has changed.
func (d *Demand) WithCapacity(capacity mix.Capacity, largest int) *Demand {
	if !slices.Equal(d.dist.On(capacity).Portions, d.resolved.Portions) {
		return NewDemand(d.dist, capacity, largest)
	}
	n := *d
	n.capacity = maps.Clone(capacity)
	n.pressure, n.sizes = pressure(d.confined, capacity), d.dist.Sizes(largest)
	return &n
}

// Known reports whether enough is known of the work for any of it to mean something.
func (d *Demand) Known() bool { return d != nil && d.dist.Known }

// Distribution is the mix behind the demand.
func (d *Demand) Distribution() *mix.Distribution { return d.dist }

// Stranding is the packing value by this demand.
func (d *Demand) Stranding() *Stranding { return d.stranding }

// confinementsOf groups the demand by the models that it accepts.
func confinementsOf(d *mix.Distribution, demand, pods float64) []confinement {
	if demand == 0 {
		return nil
	}
	type tally struct{ pods, demand float64 }
	tallies := map[string]tally{}
	for _, p := range d.Portions {
		if p.Models != "" && p.Count > 0 && p.Slices == "" {
			t := tallies[p.Models]
			tallies[p.Models] = tally{t.pods + p.Fraction, t.demand + p.Fraction*float64(p.Count*p.Milli)}
		}
	}
	var all []confinement
	for _, models := range slices.Sorted(maps.Keys(tallies)) {
		t := tallies[models]
		share := t.demand / demand * certain(t.pods/pods, d.Independent*pods)
		if share > 0 {
			all = append(all, confinement{models: strings.Split(models, "|"), share: share})
		}
	}
	return all
}

// certain is which part of an observed fraction of n arrivals is taken for more than chance. One pod says nothing yet,
// two count a third, twenty nine tenths. To wait for more costs more than it saves: GPUs of a model that most pods
// could have left alone are gone before the pods come that need them.
func certain(fraction, n float64) float64 {
	if math.IsInf(n, 1) {
		return 1
	}
	pods := fraction * n
	return max(0, (pods-1)/(pods+1))
}

// pressure is the demand on each model in GPUs per GPU of capacity, relative to the mean: confined demand is spread
// over its models in proportion to their capacity, the rest over all.
func pressure(confined []confinement, capacity mix.Capacity) map[string]float64 {
	total := capacity.GPUs()
	rest := 1.0
	perGPU := make(map[string]float64, len(capacity))
	for _, c := range confined {
		accepted := 0
		for model, s := range capacity {
			if c.holds(model) {
				accepted += s.GPUs
			}
		}
		rest -= c.share
		if accepted == 0 {
			continue
		}
		for model := range capacity {
			if c.holds(model) {
				perGPU[model] += c.share / float64(accepted)
			}
		}
	}
	for model := range capacity {
		perGPU[model] = (perGPU[model] + rest/float64(total)) * float64(total)
	}
	return perGPU
}

func (c *confinement) holds(model string) bool {
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

// maxPressure bounds the pressure that counts, so that a model nearly all of whose GPUs are spoken for is at most that
// many times as dear as the GPUs themselves.
const maxPressure = 4

// scarcity is what taking one GPU of the model costs others while the cluster fills, in GPUs: all of it for each unit
// by which the pressure on it is above the lowest that the pod could choose.
func (d *Demand) scarcity(model string, lowest float64) float64 {
	p, ok := d.pressure[model]
	if !ok {
		return 0
	}
	return min(maxPressure, max(0, p-lowest))
}

// contention is what taking one GPU of the model costs others while pods come and go, in GPUs: the probability that the
// demand confined to some models will find too few of them free. Only models count that include this one and that the
// pod can leave. N GPUs of the idle ones are expected to be asked for by it; a sum of that many independent pods has
// the variance N times their mean size.
func (d *Demand) contention(model string, r *Request, s *Supply) float64 {
	worst := 0.0
	for i := range d.confined {
		c := &d.confined[i]
		if !c.holds(model) || d.confines(r, c) {
			continue
		}
		var free int64
		for _, m := range c.models {
			free += s.FreeByModel(m)
		}
		expected := c.share * float64(s.IdleMilli()) / WholeMilli
		worst = max(worst, shortage(float64(free)/WholeMilli, expected, expected*d.meanGPUs))
	}
	return worst
}

// confines reports whether the request accepts no model of the cluster but these.
func (d *Demand) confines(r *Request, to *confinement) bool {
	for model := range d.capacity {
		if accepts(d.capacity, r, model) && !to.holds(model) {
			return false
		}
	}
	return true
}
