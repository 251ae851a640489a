package gpu

import (
	"cmp"
	"slices"
	"strings"
)

// mixHalfLife is after how many further arrivals an observed pod counts half. A few thousand pods are days of a busy
// cluster: long enough that the rare 8-GPU job keeps its weight, short enough to follow a change of tenants.
const mixHalfLife = 8192

// mixKnown is how many arrivals of pods that do not belong together make a mix worth trusting; before that best-fit
// decides. Best-fit strands what the first pods leave for as long as they run, so even a rough mix is better: see
// docs/gpu.md for what this number is worth.
const mixKnown = 16

// Class is a kind of pod as far as packing is concerned.
type Class struct {
	// CPUMilli is the CPU request.
	CPUMilli int64
	// Count is how many GPUs, Milli the compute of each.
	Count, Milli int
	// Models are the acceptable products joined by "|", sorted; empty for any.
	Models string
}

// ClassOf is the class of a request; a share given by memory counts on GPUs of memMiB each.
func ClassOf(r *Request, memMiB int) Class {
	c := Class{CPUMilli: r.CPUMilli, Count: r.Count}
	if s, ok := r.ShareOn(memMiB); ok && r.Count > 0 {
		c.Milli = min(s.Milli, WholeMilli)
	} else {
		c.Count = 0
	}
	c.Models = strings.Join(r.Models, "|")
	return c
}

// accepts reports whether the class runs on a GPU of that model.
func (c Class) accepts(model string) bool {
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

// Mix is the composition of the workload: a histogram of the classes of pods that arrived, in which older arrivals
// fade. It is not safe for concurrent use; Distribution returns an immutable picture of it.
type Mix struct {
	weights map[Class]float64
	// step is the weight of the next arrival. It grows, instead of every older weight shrinking.
	step     float64
	arrivals int
	// independent counts the arrivals but for those that came along with another.
	independent int
}

// NewMix returns a mix that knows nothing yet.
func NewMix() *Mix { return &Mix{weights: map[Class]float64{}, step: 1} }

// decay is the growth of step for one arrival: 2^(1/mixHalfLife).
const decay = 1 + 0.6931471805599453/mixHalfLife

// Observe counts one arrival. One that is not independent belongs to the same work as an earlier one, as the members of a
// gang do: it counts in the mix, but says nothing of how well that is known.
func (m *Mix) Observe(c Class, independent bool) {
	m.weights[c] += m.step
	m.arrivals++
	if independent {
		m.independent++
	}
	m.step *= decay
	if m.step > 1e9 {
		m.rescale()
	}
}

// rescale keeps the weights in range and forgets classes that have all but faded.
func (m *Mix) rescale() {
	for c, w := range m.weights {
		if m.weights[c] = w / m.step; m.weights[c] < 1e-6 {
			delete(m.weights, c)
		}
	}
	m.step = 1
}

// Arrivals is how many pods were ever observed.
func (m *Mix) Arrivals() int { return m.arrivals }

// Known reports whether enough arrivals were observed to trust the mix.
func (m *Mix) Known() bool { return m.independent >= mixKnown }

// Portion is the fraction of arrivals that belong to one class.
type Portion struct {
	Class
	Fraction float64
}

// Distribution is the composition of a workload at one moment, in a fixed order. It is immutable.
type Distribution struct {
	portions []Portion
	// eightGPUShare is asked for at every node of a cycle, and the portions may be thousands.
	eightGPUShare float64
	// Known reports that enough arrivals stand behind it.
	Known bool
}

// Distribution returns the mix as it is now.
func (m *Mix) Distribution() *Distribution {
	d := &Distribution{Known: m.Known(), portions: make([]Portion, 0, len(m.weights))}
	for c, w := range m.weights {
		d.portions = append(d.portions, Portion{c, w})
	}
	// Draws map a uniform number through the cumulative fractions: ordered by size, a small change of the mix moves
	// few draws, and those to a similar pod. The order also keeps sums the same from run to run.
	slices.SortFunc(d.portions, func(a, b Portion) int { return a.compare(b.Class) })
	total := 0.0
	for _, p := range d.portions {
		total += p.Fraction
	}
	var eight, all float64
	for i := range d.portions {
		p := &d.portions[i]
		p.Fraction /= total
		demand := p.Fraction * float64(p.Count*p.Milli)
		all += demand
		if p.Count >= 8 {
			eight += demand
		}
	}
	if all > 0 {
		d.eightGPUShare = eight / all
	}
	return d
}

// compare orders classes by GPU, then by CPU and models.
func (c Class) compare(o Class) int {
	return cmp.Or(cmp.Compare(c.Count*c.Milli, o.Count*o.Milli), cmp.Compare(c.Count, o.Count),
		cmp.Compare(c.CPUMilli, o.CPUMilli), cmp.Compare(c.Models, o.Models))
}

// Distance is the total variation distance of two distributions: half the sum of the differences, 0 to 1.
func (d *Distribution) Distance(other *Distribution) float64 {
	sum := 0.0
	a, b := d.portions, other.portions
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].compare(b[0].Class) < 0:
			sum += a[0].Fraction
			a = a[1:]
		case len(a) == 0 || a[0].compare(b[0].Class) > 0:
			sum += b[0].Fraction
			b = b[1:]
		default:
			sum += max(a[0].Fraction-b[0].Fraction, b[0].Fraction-a[0].Fraction)
			a, b = a[1:], b[1:]
		}
	}
	return sum / 2
}

// EightGPUShare is the part of the GPU demand that comes from pods of eight or more GPUs, 0 to 1.
func (d *Distribution) EightGPUShare() float64 { return d.eightGPUShare }

// Pressure is the demand on each model in GPUs per GPU of capacity, relative to the mean: the demand of each class is
// spread over the models that it accepts in proportion to their capacity (in GPUs).
func (d *Distribution) Pressure(capacity map[string]int) map[string]float64 {
	pressure := make(map[string]float64, len(capacity))
	var all float64
	total := 0
	for _, n := range capacity {
		total += n
	}
	for _, p := range d.portions {
		demand := p.Fraction * float64(p.Count*p.Milli)
		accepted := 0
		for m, n := range capacity {
			if p.accepts(m) {
				accepted += n
			}
		}
		if demand == 0 || accepted == 0 {
			continue
		}
		all += demand
		for m := range capacity {
			if p.accepts(m) {
				pressure[m] += demand / float64(accepted)
			}
		}
	}
	if all > 0 {
		for m := range pressure {
			pressure[m] *= float64(total) / all
		}
	}
	return pressure
}
