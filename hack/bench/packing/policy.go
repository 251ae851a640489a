package packing

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"

	"berth.dev/berth/pkg/gpu"
)

// policy ranks the machines that a pod fits, the lowest value first.
type policy interface {
	// placed tells it of pods that were given a place, or that have left theirs where n is negative.
	placed(k *kind, n int)
	// begin prepares it for one pod.
	begin(c *cluster, k *kind)
	value(m *machine, i int, k *kind) float64
}

// simple is a policy that looks at one machine at a time and knows nothing else.
type simple func(m *machine, k *kind) float64

func (simple) placed(*kind, int)                          {}
func (simple) begin(*cluster, *kind)                      {}
func (s simple) value(m *machine, _ int, k *kind) float64 { return s(m, k) }

// bestFit leaves the least of the node: the sum of CPU and GPU that stay free, each as a part of a large node, as the
// authors of the trace define it.
func bestFit(m *machine, k *kind) float64 {
	return float64(m.inv.FreeCPUMilli-k.request.CPUMilli)/128_000 + float64(m.inv.FreeMilli()-k.milli)/8000
}

// mostAllocated is NodeResourcesFit with that strategy: the mean of the parts that are taken of CPU and GPU. A pod
// without GPUs is judged by CPU alone.
func mostAllocated(m *machine, k *kind) float64 {
	cpu := 1 - float64(m.inv.FreeCPUMilli-k.request.CPUMilli)/float64(m.inv.CPUMilli)
	if k.milli == 0 {
		return -cpu
	}
	gpus := 1 - float64(m.inv.FreeMilli()-k.milli)/float64(len(m.inv.Devices)*gpu.WholeMilli)
	return -(cpu + gpus) / 2
}

// mostGPU is that strategy where the GPU counts five times as much as CPU.
func mostGPU(m *machine, k *kind) float64 {
	if k.milli == 0 {
		return mostAllocated(m, k)
	}
	cpu := 1 - float64(m.inv.FreeCPUMilli-k.request.CPUMilli)/float64(m.inv.CPUMilli)
	gpus := 1 - float64(m.inv.FreeMilli()-k.milli)/float64(len(m.inv.Devices)*gpu.WholeMilli)
	return -(cpu + 5*gpus) / 6
}

// maker makes a policy for a run on a cluster.
type maker func(f *Family, c *cluster, seed uint64) policy

// policies are the rules that can be compared, by name.
func policies() map[string]maker {
	return map[string]maker{
		"random": func(_ *Family, _ *cluster, seed uint64) policy {
			r := rand.New(rand.NewPCG(seed, 13)) //nolint:gosec // a simulation
			return simple(func(*machine, *kind) float64 { return r.Float64() })
		},
		"best-fit":       func(*Family, *cluster, uint64) policy { return simple(bestFit) },
		"most-allocated": func(*Family, *cluster, uint64) policy { return simple(mostAllocated) },
		"most-gpu":       func(*Family, *cluster, uint64) policy { return simple(mostGPU) },
		"fgd":            func(f *Family, _ *cluster, _ uint64) policy { return newFGD(f.kinds, f.weights) },
		"given": func(f *Family, c *cluster, _ uint64) policy {
			return newOurs(gpu.DefaultWeights(), c, f.mix())
		},
		"ours":  func(_ *Family, c *cluster, _ uint64) policy { return newOurs(gpu.DefaultWeights(), c, nil) },
		"berth": func(_ *Family, c *cluster, _ uint64) policy { return newProfile(c, 20, 20) },
		"cost":  func(_ *Family, c *cluster, _ uint64) policy { return newProfile(c, 2, 20) },
	}
}

// fgd is Fragmentation Gradient Descent (Weng et al., USENIX ATC 2023): the placement that adds the least to the
// fragmentation, which is, in the mean over the mix, the GPU that a pod cannot use where it is. Ties go to best-fit.
type fgd struct {
	simple
	mix    []share
	cached map[string]float64
}

type share struct {
	*kind
	fraction float64
}

func newFGD(kinds []kind, weights []float64) *fgd {
	f := &fgd{cached: map[string]float64{}}
	for i := range kinds {
		if kinds[i].milli > 0 {
			f.mix = append(f.mix, share{&kinds[i], weights[i]})
		}
	}
	return f
}

func (f *fgd) value(m *machine, _ int, k *kind) float64 {
	var buf, buf2 [16]int
	before := vector(m.inv, buf[:0])
	after := append(buf2[:0], before...)
	if k.milli > 0 {
		devices, s, _ := gpu.Choose(m.inv, &k.request)
		for _, d := range devices {
			after[d] -= s.Milli
		}
	}
	grown := f.fragmentation(m.inv.Model, m.inv.FreeCPUMilli-k.request.CPUMilli, after) - f.fragmentation(m.inv.Model,
		m.inv.FreeCPUMilli, before)
	return grown + bestFit(m, k)*1e-3
}

func vector(inv *gpu.Inventory, buf []int) []int {
	for _, d := range inv.Devices {
		buf = append(buf, d.FreeMilli)
	}
	return buf
}

func (f *fgd) fragmentation(model string, cpu int64, free []int) float64 {
	slices.Sort(free)
	key := append([]byte(model), 0)
	key = binary.LittleEndian.AppendUint32(key, uint32(cpu))
	for _, d := range free {
		key = binary.LittleEndian.AppendUint16(key, uint16(d))
	}
	if v, ok := f.cached[string(key)]; ok {
		return v
	}
	total := 0
	for _, d := range free {
		total += d
	}
	sum := 0.0
	for _, s := range f.mix {
		n, stuck := 0, 0
		for _, d := range free {
			if d >= s.request.Milli {
				n++
			} else {
				stuck += d
			}
		}
		if s.request.CPUMilli > cpu || n < s.request.Count || !s.request.AcceptsModel(model) {
			stuck = total
		}
		sum += s.fraction * float64(stuck)
	}
	f.cached[string(key)] = sum
	return sum
}

// ours is the rule of pkg/gpu, with a mix that is given, or that of what runs.
type ours struct {
	weights gpu.Weights
	// running are the pods that run, nil where the mix is given.
	running *gpu.Histogram
	drawn   *gpu.Demand
	supply  *cluster
	judge   *gpu.Judge
	// number tells changes by one demand from those by another.
	number  int
	changes map[*kind][]remembered
	now     []remembered
}

// remembered is what a placement does to one state of a machine.
type remembered struct {
	epoch, number int
	change        gpu.Change
}

func newOurs(w gpu.Weights, c *cluster, given *gpu.Distribution) *ours {
	o := &ours{weights: w, supply: c, changes: map[*kind][]remembered{}}
	if given != nil {
		o.draw(given)
		return o
	}
	o.running = &gpu.Histogram{}
	o.draw(o.running.Distribution())
	return o
}

func (o *ours) draw(d *gpu.Distribution) {
	o.drawn = gpu.NewDemand(d, o.supply.capacity, o.supply.largest)
	o.number++
}

func (o *ours) placed(k *kind, n int) {
	switch {
	case o.running == nil:
		return
	case k.shape.Count == 0:
		o.running.AddBeside(int64(n) * k.request.CPUMilli)
	default:
		o.running.Add(k.shape, "", n) // each pod is on its own
	}
	if d := o.running.Redraw(o.drawn.Distribution()); d != nil {
		o.draw(d)
	}
}

func (o *ours) begin(c *cluster, k *kind) {
	o.judge = gpu.NewJudge(o.weights, false, o.drawn, &c.supply, &k.request)
	o.now = o.changes[k]
	if o.now == nil {
		o.now = make([]remembered, len(c.machines))
		o.changes[k] = o.now
	}
}

func (o *ours) value(m *machine, i int, k *kind) float64 {
	r := &o.now[i]
	if r.epoch != m.epoch+1 || r.number != o.number {
		*r = remembered{m.epoch + 1, o.number, o.judge.Change(m.inv, &k.request, gpu.Placement{})}
	}
	return o.judge.Price(&r.change).Sum()
}

// best returns the machine that the policy likes best of those that the pod fits, -1 for none. Of equals the rank
// decides, which is drawn by chance, so that no policy profits from the order of the machines.
func best(c *cluster, p policy, k *kind, rank []int) int {
	chosen, least := -1, math.Inf(1)
	p.begin(c, k)
	for i := range c.machines {
		if !c.fits(i, k) {
			continue
		}
		if v := p.value(&c.machines[i], i, k); chosen < 0 || v < least-1e-9 || v < least+1e-9 && rank[i] < rank[chosen] {
			chosen, least = i, v
		}
	}
	return chosen
}
