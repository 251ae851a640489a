// Package mix learns what work a cluster has: which classes of pods come, how long they run, and who makes them.
//
// GPUAware feeds it with arrivals, beginnings and ends, and prices what a placement leaves by the distribution that it
// draws up. It is pure: time is an argument, and the same history gives the same distribution to the last bit.
package mix

import (
	"cmp"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"
)

// WholeMilli is one physical GPU in milli-GPU.
const WholeMilli = 1000

// mixHalfLife is after how many further arrivals an observed pod counts half. A few thousand pods are days of a busy
// cluster: long enough that the rare 8-GPU job keeps its weight, short enough to follow a change of tenants.
const mixHalfLife = 8192

// mixKnown is how many arrivals of pods that do not belong together make a mix worth trusting; before that best-fit
// decides. Best-fit strands what the first pods leave for as long as they run, so even a rough mix is better: see
// docs/internals/packing.md for what this number is worth.
const mixKnown = 16

// mostClasses is how many classes a mix tells apart. Drawing it up takes time in proportion, and others wait for it.
const mostClasses = 2048

// coarsest is how often classes may be made coarser; see coarsen.
const coarsest = 3

// Class is a kind of pod as far as packing is concerned.
type Class struct {
	// CPUMilli is the CPU request.
	CPUMilli int64
	// Count is how many GPUs, Milli the compute of each.
	Count, Milli int
	// Models are the acceptable products joined by "|", sorted; empty for any.
	Models string
	// MinMemMiB is the least memory that each GPU must have, and Linked that NVLink must connect them.
	MinMemMiB int
	Linked    bool
	// Slices names the hardware slices (MIG) that it asks for instead of GPUs, joined by ",". They are demand for GPU,
	// as much as Count and Milli say, but for none that others could have.
	Slices string
}

// Accepts reports whether the class runs on a GPU of that model.
func (c Class) Accepts(model string) bool {
	if c.Slices != "" {
		return false
	}
	if c.Models == "" {
		return true
	}
	for m := range strings.SplitSeq(c.Models, "|") {
		if strings.EqualFold(m, model) {
			return true
		}
	}
	return false
}

// Mix is the composition of the workload: a histogram of the classes of pods that arrived, weighted by how long such
// pods run, in which older arrivals fade. It is not safe for concurrent use; Distribution returns an immutable picture
// of it.
type Mix struct {
	weights   map[Class]float64
	lifetimes lifetimes
	owners    owners
	shift     shift
	// coarse is how often classes were made coarser, because there were too many. It never falls: a pod is counted under
	// the class of the time at which it began, and its end has to find that class.
	coarse int
	// step is the weight of the next arrival. It grows, instead of every older weight shrinking.
	step     float64
	arrivals int
	// independent counts the arrivals but for those that came along with another.
	independent int
	// redrawAt is the number of arrivals at which to look again whether the mix in use is still that of the workload.
	redrawAt int
}

const (
	// redrawEvery is after how many arrivals at most the mix is compared with the one in use. While few are known it is
	// compared whenever their number has grown by the part of 1/redrawGrowth, as each still changes it.
	redrawEvery, redrawGrowth = 64, 8
	// redrawDistance is the Distance by which they must differ for a new one to be worth the cold cache.
	redrawDistance = 0.03
)

// Redraw returns the mix as it is now if it is time to look and it has moved from the one in use, else nil.
func (m *Mix) Redraw(inUse *Distribution) *Distribution {
	if m.arrivals < m.redrawAt {
		return nil
	}
	m.redrawAt = m.arrivals + max(1, min(redrawEvery, m.arrivals/redrawGrowth))
	now := m.Distribution()
	if now.Known == inUse.Known && (!now.Known || now.Distance(inUse) < redrawDistance) {
		return nil
	}
	return now
}

// New returns a mix that knows nothing yet.
func New() *Mix { return &Mix{weights: map[Class]float64{}, step: 1} }

// decay is the growth of step for one arrival: 2^(1/mixHalfLife).
const decay = 1 + 0.6931471805599453/mixHalfLife

// Observe counts one arrival and who made the pod. One that is not
// independent belongs to the same work as an earlier one, as the members of a gang do: it counts in the mix, but says
// nothing of how well that is known.
func (m *Mix) Observe(c Class, owner Owner, independent bool) {
	part := m.step * m.owners.part(owner, m.step, m.lifetimes.now)
	if c, ok := m.admit(c); ok {
		m.weights[c] += part
	}
	m.arrivals++
	if independent {
		m.independent++
		if m.shift.observe(c) {
			m.forget()
		}
	}
	m.step *= decay
	if m.step > 1e9 {
		m.rescale()
	}
}

// forget makes all that is known count as shiftedPods arrivals.
func (m *Mix) forget() {
	total := 0.0
	for _, c := range inOrder(m.weights) {
		total += m.weights[c]
	}
	if part := shiftedPods * m.step / total; part < 1 {
		for c := range m.weights {
			m.weights[c] *= part
		}
	}
	m.independent = min(m.independent, max(mixKnown, shiftedPods))
	m.redrawAt = m.arrivals
}

// Started counts a pod that has begun to run, and Ended one that has stopped, which began at that time.
func (m *Mix) Started(c Class, owner Owner, at time.Time) {
	m.owners.started(owner, at)
	if c, ok := m.admit(c); ok {
		m.lifetimes.started(c, at)
	}
}

// Ended counts a pod that has stopped to run.
func (m *Mix) Ended(c Class, owner Owner, began, at time.Time) {
	m.owners.ended(owner, began, at)
	c = c.coarsen(m.coarse)
	m.lifetimes.ended(c, began, at)
	if _, arrives := m.weights[c]; !arrives {
		m.lifetimes.forget(c) // the last of its pods outlived its weight
	}
}

// admit returns the class as which the mix counts that class. Where the mix has too many, it makes all of them coarser,
// which happens a few times at most. It returns false for a new class where even that leaves too many: such pods differ
// in more than their size.
func (m *Mix) admit(c Class) (Class, bool) {
	for {
		as := c.coarsen(m.coarse)
		_, arrived := m.weights[as]
		if arrived || m.lifetimes.knows(as) || max(len(m.weights), len(m.lifetimes.byClass)) < mostClasses {
			return as, true
		}
		if m.coarse == coarsest {
			return as, false
		}
		m.coarse++
		weights := make(map[Class]float64, len(m.weights))
		for _, class := range inOrder(m.weights) {
			weights[class.coarsen(m.coarse)] += m.weights[class]
		}
		m.weights = weights
		m.lifetimes.merge(func(class Class) Class { return class.coarsen(m.coarse) })
	}
}

// coarsen rounds the class up: CPU to 4 significant bits, then to 2, then to powers of two, and shares to fiftieths,
// twentieths and tenths of a GPU. Coarser steps contain the finer ones, so that a class that was coarsened twice is the
// one that was coarsened once, by the same steps.
func (c Class) coarsen(times int) Class {
	for i := range times {
		c.CPUMilli = roundUp(c.CPUMilli, [coarsest]int{4, 2, 1}[i])
		if c.Milli < WholeMilli {
			step := [coarsest]int{20, 50, 100}[i]
			c.Milli = min(WholeMilli, (c.Milli+step-1)/step*step)
		}
	}
	return c
}

// roundUp keeps a number of significant bits.
func roundUp(n int64, significant int) int64 {
	n = min(n, 1<<50) // room for rounding
	drop := bits.Len64(uint64(max(0, n))) - significant
	if drop <= 0 {
		return n
	}
	unit := int64(1) << drop
	return (n + unit - 1) / unit * unit
}

// rescale keeps the weights in range and forgets classes that have all but faded.
func (m *Mix) rescale() {
	for _, c := range inOrder(m.weights) {
		if m.weights[c] /= m.step; m.weights[c] < 1e-6 {
			delete(m.weights, c)
			m.lifetimes.forget(c)
		}
	}
	m.owners.rescale(m.step)
	m.step = 1
}

// Known reports whether enough arrivals were observed to trust the mix.
func (m *Mix) Known() bool { return m.independent >= mixKnown }

// Portion is the fraction of arrivals that belong to one class.
type Portion struct {
	Class
	Fraction float64
}

// Distribution is the composition of a workload at one moment, in a fixed order. It is immutable.
type Distribution struct {
	Portions []Portion
	// Independent is how many arrivals stand behind it that do not belong together, infinite where it is given.
	Independent float64
	// Known reports that enough arrivals stand behind it.
	Known bool
}

// Given returns the distribution of a workload that is known for certain. The fractions need not add up to one.
func Given(portions []Portion) *Distribution {
	m := New()
	for _, p := range portions {
		m.weights[p.Class] += p.Fraction
	}
	d := m.Distribution()
	d.Known, d.Independent = true, math.Inf(1)
	return d
}

// Distribution returns the mix as it is now.
func (m *Mix) Distribution() *Distribution {
	d := &Distribution{Known: m.Known(), Independent: float64(m.independent), Portions: make([]Portion, 0, len(m.weights))}
	for c, w := range m.weights {
		d.Portions = append(d.Portions, Portion{c, w * m.lifetimes.part(c)})
	}
	// Draws map a uniform number through the cumulative fractions: ordered by size, a small change of the mix moves
	// few draws, and those to a similar pod. The order also keeps sums the same from run to run.
	slices.SortFunc(d.Portions, func(a, b Portion) int { return a.compare(b.Class) })
	total := 0.0
	for _, p := range d.Portions {
		total += p.Fraction
	}
	for i := range d.Portions {
		d.Portions[i].Fraction /= total
	}
	return d
}

// inOrder returns the classes in a fixed order, in which sums of floating-point numbers are the same from run to run.
func inOrder[V any](byClass map[Class]V) []Class {
	return slices.SortedFunc(maps.Keys(byClass), Class.compare)
}

// compare orders classes by GPU, then by CPU and models.
func (c Class) compare(o Class) int {
	return cmp.Or(cmp.Compare(c.Count*c.Milli, o.Count*o.Milli), cmp.Compare(c.Count, o.Count),
		cmp.Compare(c.CPUMilli, o.CPUMilli), cmp.Compare(c.Models, o.Models), cmp.Compare(c.Slices, o.Slices),
		cmp.Compare(c.MinMemMiB, o.MinMemMiB), linkedLast(c.Linked, o.Linked))
}

// linkedLast orders classes that want links behind those that do not.
func linkedLast(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// Distance is by how much the demand for GPUs differs, 0 to 1: the total variation distance of the pods with GPUs, or
// the relative difference of the CPU that pods without GPUs ask for beside them, whichever is more. Which pods without
// GPUs come does not matter, and where nearly all are, the few with GPUs matter as much as elsewhere.
func (d *Distribution) Distance(other *Distribution) float64 {
	a, b := d.Portions, other.Portions
	gpusA, cpuA := d.split()
	gpusB, cpuB := other.split()
	if gpusA == 0 || gpusB == 0 {
		if gpusA == gpusB {
			return 0
		}
		return 1
	}
	sum := 0.0
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(a) > 0 && a[0].Count == 0:
			a = a[1:]
		case len(b) > 0 && b[0].Count == 0:
			b = b[1:]
		case len(b) == 0 || len(a) > 0 && a[0].compare(b[0].Class) < 0:
			sum += a[0].Fraction / gpusA
			a = a[1:]
		case len(a) == 0 || a[0].compare(b[0].Class) > 0:
			sum += b[0].Fraction / gpusB
			b = b[1:]
		default:
			sum += math.Abs(a[0].Fraction/gpusA - b[0].Fraction/gpusB)
			a, b = a[1:], b[1:]
		}
	}
	beside, besideOther := cpuA/gpusA, cpuB/gpusB
	return max(sum/2, math.Abs(beside-besideOther)/max(beside, besideOther, 1))
}

// split is the part of the pods with GPUs, and the CPU that those without ask for, per arrival.
func (d *Distribution) split() (gpus, cpuMilli float64) {
	for _, p := range d.Portions {
		if p.Count > 0 {
			gpus += p.Fraction
		} else {
			cpuMilli += p.Fraction * float64(p.CPUMilli)
		}
	}
	return gpus, cpuMilli
}

// GPUDemand sums the requests of the pods with GPUs, those with slices apart, per arrival: their CPU in milli-cores and
// their GPU in milli-GPU.
func (d *Distribution) GPUDemand() (cpuMilli, milliGPU float64) {
	for _, p := range d.Portions {
		if p.Count > 0 && p.Slices == "" {
			cpuMilli += p.Fraction * float64(p.CPUMilli)
			milliGPU += p.Fraction * float64(p.Count*p.Milli)
		}
	}
	return cpuMilli, milliGPU
}
