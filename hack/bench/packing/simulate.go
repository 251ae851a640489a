package packing

import (
	"cmp"
	"math"
	"math/rand/v2"

	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/minheap"
)

// bigGPUs is from how many GPUs a pod is big.
const bigGPUs = 4

// fill lets pods come to an empty cluster until they have asked for all of its GPUs. None leaves, and none is tried
// again: the method of the trace's authors.
func fill(f *Family, with func(*cluster) policy, seed uint64) Result {
	c := newCluster(f.shapes)
	p := with(c)
	r := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // a simulation
	rank := r.Perm(len(c.machines))
	arrived, big, refused := 0, 0, 0
	var o Result
	next := f.arrivals(r)
	for arrived < c.gpuMilli {
		k := next(float64(arrived) / float64(c.gpuMilli))
		asked := k.members * k.milli
		arrived += asked
		placed := c.place(p, k, rank)
		if k.request.Count >= bigGPUs {
			big += asked
			if placed == nil {
				refused += asked
			}
		}
		if o.Nodes == 0 && 2*arrived >= c.gpuMilli {
			o.Nodes, o.Dollars = float64(c.inUse), dollars(c.inUsePrice)
		}
	}
	o.Allocated = 100 * float64(c.usedMilli) / float64(c.gpuMilli)
	o.BigMissing = 100 * float64(refused) / float64(max(1, big))
	return o
}

// The mean lifetime of a pod is the unit of time of a churn. lifetimeSigma is that of the lognormal distribution: a
// tenth of the pods run for three quarters of all the time.
const (
	lifetimeSigma = 1.5
	warmUp, span  = 4.0, 8.0
)

// churn lets pods come at random, run for a lognormal time and go, while load times as many GPUs are asked for as there
// are. What does not fit waits, and is tried, the oldest first, whenever a pod goes.
func churn(f *Family, with func(*cluster) policy, load float64, seed uint64) Result {
	c := newCluster(f.shapes)
	p := with(c)
	r := rand.New(rand.NewPCG(seed, 11)) //nolint:gosec // a simulation
	rank := r.Perm(len(c.machines))
	mean := 0.0
	for i := range f.kinds {
		mean += f.weights[i] * float64(f.kinds[i].milli*f.kinds[i].members)
	}
	rate := load * float64(c.gpuMilli) / mean
	// The pods that run, the one that ends first on top.
	running := minheap.Heap[end]{Compare: func(a, b end) int { return cmp.Compare(a.at, b.at) }}
	var waiting []waiter
	bigWaiting := 0
	var o Result
	var used, time, bigTime, nodes, cost float64
	now, next := 0.0, 0.0
	account := func(until float64) {
		if d := until - max(now, warmUp); d > 0 {
			used += d * float64(c.usedMilli)
			bigTime += d * float64(bigWaiting)
			nodes += d * float64(c.inUse)
			cost += d * dollars(c.inUsePrice)
			time += d
		}
		now = until
	}
	try := func(w waiter) bool {
		placed := c.place(p, w.kind, rank)
		for _, member := range placed {
			running.Push(end{now + w.lifetime, member})
		}
		return placed != nil
	}
	for now < warmUp+span {
		if running.Len() > 0 && running.Items[0].at < next {
			e := running.Pop()
			account(e.at)
			c.release(e.placement, p)
			kept := waiting[:0]
			failed := map[*kind]bool{}
			for _, w := range waiting {
				if failed[w.kind] || !try(w) {
					failed[w.kind] = true
					kept = append(kept, w)
				} else if w.kind.request.Count >= bigGPUs {
					bigWaiting -= w.kind.members * w.kind.milli
				}
			}
			waiting = kept
			continue
		}
		account(next)
		next += r.ExpFloat64() / rate
		lifetime := math.Exp(r.NormFloat64()*lifetimeSigma - lifetimeSigma*lifetimeSigma/2)
		k := f.draw(r, now/(warmUp+span))
		w := waiter{k, lifetime}
		if !try(w) {
			waiting = append(waiting, w)
			if k.request.Count >= bigGPUs {
				bigWaiting += k.members * k.milli
			}
		}
	}
	o.Allocated = 100 * used / time / float64(c.gpuMilli)
	o.BigMissing = 100 * bigTime / time / float64(c.gpuMilli)
	o.Nodes, o.Dollars = nodes/time, cost/time
	return o
}

type waiter struct {
	kind     *kind
	lifetime float64
}

type end struct {
	at float64
	placement
}

func dollars(m price.MicroDollars) float64 { return float64(m) / float64(price.Dollar) }
