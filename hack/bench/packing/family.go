package packing

import (
	"fmt"
	"math"
	"math/rand/v2"

	"berth.dev/berth/pkg/gpu"
)

// Family is a kind of cluster with a kind of work.
type Family struct {
	name   string
	shapes []shape
	kinds  []kind
	// weights are how often each kind comes; they add up to 1. From changeAt on, later ones take their place, unless they
	// are nil.
	weights, later []float64
	// pods lists the kinds of a trace's pods, nil where they are drawn at random.
	pods []int
}

// fleet is a cluster that work is tried on, of 400 GPUs.
type fleet struct {
	name   string
	shapes []shape
}

var nodeShapes = []fleet{
	{"4-GPU", []shape{newShape("n4", "A", 4, 48000, 100)}},
	{"8-GPU", []shape{newShape("n8", "A", 8, 96000, 50)}},
	{"8-GPU few cores", []shape{newShape("n8", "A", 8, 48000, 50)}},
	{"1/2/4/8-GPU", []shape{newShape("n1", "A", 1, 8000, 100), newShape("n2", "A", 2, 16000, 50),
		newShape("n4", "A", 4, 32000, 25), newShape("n8", "A", 8, 64000, 12)}},
	{"two models", []shape{newShape("t", "T4", 4, 32000, 50), newShape("a", "A100", 8, 96000, 25)}},
}

// sizes are how GPU pods ask for GPUs.
type sizes struct {
	name string
	of   []sized
	// cpu scales the CPU of GPU pods, 1 being half of what comes with their GPUs.
	cpu float64
}

type sized struct {
	count, milli int
	weight       float64
	models       []string
}

var podSizes = []sizes{
	{"whole 1/2/4/8", []sized{{1, 1000, 50, nil}, {2, 1000, 25, nil}, {4, 1000, 15, nil}, {8, 1000, 10, nil}}, 1},
	{"whole 1/2/4", []sized{{1, 1000, 60, nil}, {2, 1000, 25, nil}, {4, 1000, 15, nil}}, 1},
	{"only 1", []sized{{1, 1000, 1, nil}}, 1},
	{"half a node and 1", []sized{{4, 1000, 1, nil}, {1, 1000, 2, nil}}, 1},
	{"mostly 8", []sized{{8, 1000, 30, nil}, {1, 1000, 70, nil}}, 1},
	{"shares and whole", []sized{{1, 100, 10, nil}, {1, 250, 15, nil}, {1, 500, 15, nil}, {1, 700, 10, nil},
		{1, 1000, 30, nil}, {2, 1000, 10, nil}, {4, 1000, 10, nil}}, 1},
	{"much CPU", []sized{{1, 1000, 50, nil}, {2, 1000, 25, nil}, {4, 1000, 15, nil}}, 1.8},
	{"heavy tail", []sized{{1, 200, 40, nil}, {1, 1000, 40, nil}, {2, 1000, 10, nil}, {3, 1000, 3, nil}, {4, 1000, 4, nil},
		{8, 1000, 3, nil}}, 1},
	{"few models", []sized{{1, 1000, 40, nil}, {2, 1000, 15, nil}, {1, 1000, 20, []string{"T4"}},
		{4, 1000, 10, []string{"A100"}}, {2, 1000, 10, []string{"A100"}}}, 1},
}

// Held-out shapes and sizes were used to choose only the weight of opening, among three values.
var (
	heldOutShapes = []fleet{
		{"2/8-GPU", []shape{newShape("n2", "A", 2, 24000, 100), newShape("n8", "A", 8, 64000, 25)}},
		{"16-GPU", []shape{newShape("n16", "A", 16, 128000, 25)}},
		{"three models", []shape{newShape("l", "L4", 2, 24000, 60), newShape("t", "T4", 4, 64000, 20),
			newShape("h", "H100", 8, 112000, 25)}},
	}
	heldOutSizes = []sizes{
		{"whole 1/3/8", []sized{{1, 1000, 60, nil}, {3, 1000, 20, nil}, {8, 1000, 20, nil}}, 1},
		{"halves and thirds", []sized{{1, 500, 30, nil}, {1, 333, 30, nil}, {1, 1000, 20, nil}, {2, 1000, 20, nil}}, 0.8},
		{"pairs with much CPU", []sized{{2, 1000, 60, nil}, {1, 1000, 30, nil}, {8, 1000, 10, nil}}, 1.5},
		{"some for H100", []sized{{1, 1000, 50, nil}, {1, 400, 20, nil}, {8, 1000, 10, []string{"H100"}},
			{2, 1000, 20, []string{"T4", "H100"}}}, 1},
	}
)

// cpuOnlyShares are the parts of the arrivals that ask for no GPU.
var cpuOnlyShares = []float64{0, 0.3, 0.6, 0.9, 0.97}

// Families are all combinations that make sense of what the rules were chosen by.
func Families() []Family { return combined(nodeShapes, podSizes) }

// HeldOut are the families by which no more than the weight of opening was chosen.
func HeldOut() []Family { return combined(heldOutShapes, heldOutSizes) }

func combined(shapes []fleet, podSizes []sizes) []Family {
	var all []Family
	for _, n := range shapes {
		for _, s := range podSizes {
			for _, cpuOnly := range cpuOnlyShares {
				if f, ok := newFamily(n.name, n.shapes, s, cpuOnly); ok {
					all = append(all, f)
				}
			}
		}
	}
	return all
}

// maxCPUOnly is the most cores that a pod without GPUs asks for in the mean.
const maxCPUOnly = 2.5

// newFamily makes the kinds of pods: each size with three amounts of CPU, and pods without GPUs of four sizes such that
// all work together asks for nine tenths of the CPU when it asks for all of the GPUs.
func newFamily(name string, shapes []shape, s sizes, cpuOnly float64) (Family, bool) {
	f := Family{name: fmt.Sprintf("%s, %s, %.0f%% CPU-only", name, s.name, 100*cpuOnly), shapes: shapes}
	largest, gpus, cores := 0, 0, 0.0
	models := map[string]bool{}
	for _, n := range shapes {
		largest = max(largest, n.gpus)
		cores += float64(n.cpuMilli) / 1000 * float64(n.count)
		gpus += n.gpus * n.count
		models[n.model] = true
	}
	perGPU := cores / float64(gpus)
	total, demand, cpu := 0.0, 0.0, 0.0
	for _, z := range s.of {
		for _, m := range z.models {
			if !models[m] {
				return f, false
			}
		}
		if z.count > largest {
			return f, false
		}
		total += z.weight
	}
	for _, z := range s.of {
		for _, scale := range []float64{0.6, 1, 1.4} {
			milli := int64(math.Round(0.5*perGPU*s.cpu*scale*float64(z.count*z.milli)/1000*4) * 250)
			weight := (1 - cpuOnly) * z.weight / total / 3
			f.kinds = append(f.kinds, newKind(max(250, milli), z.count, z.milli, z.models...))
			f.weights = append(f.weights, weight)
			demand += weight * float64(z.count*z.milli) / 1000
			cpu += weight * float64(max(250, milli)) / 1000
		}
	}
	if cpuOnly > 0 {
		// What the CPU-only pods may take for each GPU that is asked for.
		left := max(0.1*perGPU, 0.9*perGPU-cpu/demand) * demand / cpuOnly
		for _, scale := range []float64{0.4, 0.8, 1.2, 1.6} {
			milli := int64(math.Max(50, math.Round(min(left, maxCPUOnly)*scale*20)*50))
			f.kinds = append(f.kinds, newKind(milli, 0, 0))
			f.weights = append(f.weights, cpuOnly/4)
		}
	}
	return f, true
}

// changeAt is the part of all arrivals, or of the time, after which the work of a family changes.
const changeAt = 0.4

// draw returns a random kind of those that come when that part of all has come.
func (f *Family) draw(r *rand.Rand, at float64) *kind {
	weights := f.weights
	if f.later != nil && at >= changeAt {
		weights = f.later
	}
	u := r.Float64()
	for i, w := range weights {
		if u -= w; u < 0 {
			return &f.kinds[i]
		}
	}
	return &f.kinds[len(f.kinds)-1]
}

// mix is the demand for certain.
func (f *Family) mix() *gpu.Distribution {
	portions := make([]gpu.Portion, len(f.kinds))
	for i := range f.kinds {
		portions[i] = gpu.Portion{Shape: f.kinds[i].shape, Fraction: f.weights[i]}
	}
	return gpu.Given(portions)
}
