package gpu

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// mixKnown is from how many pods on, each controller counted in part, the mix decides; before that best-fit does.
// Best-fit strands what the first pods leave for as long as they run, so even a rough mix is better.
const mixKnown = 8

// Shape is what packing knows of a pod with GPUs. Pods of one shape are alike to it.
type Shape struct {
	// CPUMilli is the CPU request.
	CPUMilli int64
	// Count is how many GPUs, Milli the compute of each.
	Count, Milli int
	// Models are the acceptable products joined by "|", sorted; empty for any.
	Models string
	// MinMemMiB is the least memory that each GPU must have, and Linked that NVLink must connect them.
	MinMemMiB int
	Linked    bool
	// Slices names the hardware slices (MIG) that it asks for instead of GPUs, joined by ",". Count and Milli say how much
	// GPU that is. It is GPU that no other pod can have.
	Slices string
}

// acceptsModel reports whether pods of the shape run on a GPU of that model.
func (c Shape) acceptsModel(model string) bool {
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

// compare orders shapes by GPU, then by CPU and models.
func (c Shape) compare(o Shape) int {
	return cmp.Or(cmp.Compare(c.Count*c.Milli, o.Count*o.Milli), cmp.Compare(c.Count, o.Count),
		cmp.Compare(c.CPUMilli, o.CPUMilli), cmp.Compare(c.Models, o.Models), cmp.Compare(c.Slices, o.Slices),
		cmp.Compare(c.MinMemMiB, o.MinMemMiB), cmp.Compare(bit(c.Linked), bit(o.Linked)))
}

// Portion is the fraction of the pods with GPUs that have one shape.
type Portion struct {
	Shape
	Fraction float64
}

// Distribution is the composition of a workload at one moment, in a fixed order. It is immutable.
type Distribution struct {
	Portions []Portion
	// CPUBeside is the CPU, in milli-cores, of pods without GPUs for each milli-GPU of the others.
	CPUBeside float64
	// Pods is the number of pods with GPUs from which it was counted, infinite where it is given.
	Pods float64
}

// Given returns the distribution of a workload that is known for certain. The fractions need not add up to one; those
// of pods without GPUs are CPU beside the others.
func Given(portions []Portion) *Distribution {
	d := &Distribution{Pods: math.Inf(1)}
	total, cpu, milli := 0.0, 0.0, 0.0
	for _, p := range portions {
		if p.Count == 0 {
			cpu += p.Fraction * float64(p.CPUMilli)
			continue
		}
		total += p.Fraction
		milli += p.Fraction * float64(p.Count*p.Milli)
		d.Portions = append(d.Portions, p)
	}
	d.normalize(total)
	if milli > 0 {
		d.CPUBeside = cpu / milli
	}
	return d
}

// normalize sorts the portions and makes them add up to one.
func (d *Distribution) normalize(total float64) {
	// Draws map a uniform number through the cumulative fractions: ordered by size, a small change of the mix moves
	// few draws, and those to a similar pod. The order also keeps sums the same from run to run.
	slices.SortFunc(d.Portions, func(a, b Portion) int { return a.compare(b.Shape) })
	for i := range d.Portions {
		d.Portions[i].Fraction /= total
	}
}

// Known reports whether the distribution was counted from enough pods to trust it.
func (d *Distribution) Known() bool { return d.Pods >= mixKnown }

// Distance is by how much the demand for GPUs differs, 0 to 1: the total variation distance of the pods with GPUs, or
// the relative difference of the CPU that pods without GPUs request beside them, whichever is more.
func (d *Distribution) Distance(other *Distribution) float64 {
	a, b := d.Portions, other.Portions
	if len(a) == 0 || len(b) == 0 {
		if len(a) == len(b) {
			return 0
		}
		return 1
	}
	sum := 0.0
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].compare(b[0].Shape) < 0:
			sum += a[0].Fraction
			a = a[1:]
		case len(a) == 0 || a[0].compare(b[0].Shape) > 0:
			sum += b[0].Fraction
			b = b[1:]
		default:
			sum += math.Abs(a[0].Fraction - b[0].Fraction)
			a, b = a[1:], b[1:]
		}
	}
	beside, besideOther := d.CPUBeside, other.CPUBeside
	return max(sum/2, math.Abs(beside-besideOther)/max(beside, besideOther, 1.0/WholeMilli))
}

// gpuDemand sums the requests of the pods with GPUs, those with slices apart, per pod: their CPU in milli-cores and
// their GPU in milli-GPU.
func (d *Distribution) gpuDemand() (cpuMilli, milliGPU float64) {
	for _, p := range d.Portions {
		if p.Slices == "" {
			cpuMilli += p.Fraction * float64(p.CPUMilli)
			milliGPU += p.Fraction * float64(p.Count*p.Milli)
		}
	}
	return cpuMilli, milliGPU
}
