package guard

import (
	"context"

	"berth.dev/berth/hack/bench/packing"
	"berth.dev/berth/hack/bench/rig"
)

// Figure is a number that guards. It is better the lower it is.
type Figure struct {
	Name string
	// Shows is one sentence for a list.
	Shows string
	unit  string
	// runs is how often it is measured; the figure is the median.
	runs int
	// measure takes it of one scheduler, in a process that measures nothing else.
	measure func(c contender) (float64, error)
}

const (
	// againstStock is the unit of what is measured of both schedulers in turn, and is the ratio of the two.
	againstStock = "× stock"
	// unallocated is what the allocation leaves of 100%: it shows better than the allocation how much more is wasted.
	unallocated = "% of GPUs idle"
	// onePlain is what a backlog is measured in. Stock is no measure of a backlog: it has not done in 100 s of CPU with a
	// tenth of the pods what happens in 90 s.
	onePlain = "with stock, of one pod of plain"
)

// Figures are those that are measured to see whether a change has made something worse.
var Figures = []Figure{
	{"identical", "CPU for a pod: single pods, all alike, on 2,000 nodes", againstStock, 7,
		func(c contender) (float64, error) {
			return c.placing(2000, gpusPerNode, singles(c.profile(), c.part(2000), true))
		}},
	{"distinct", "CPU for a pod: single pods, no two alike, on 2,000 nodes", againstStock, 7,
		func(c contender) (float64, error) {
			return c.placing(2000, gpusPerNode, singles(c.profile(), c.part(1000), false))
		}},
	{"plain", "CPU for a pod: pods without GPUs, on 500 nodes without GPUs", againstStock, 7,
		func(c contender) (float64, error) { return c.placing(500, 0, plain(c.profile(), 1000)) }},
	{"gangs", "CPU for a pod: 20 gangs of 32 on 2,000 nodes; with stock, pods without a gang", againstStock, 7,
		func(c contender) (float64, error) {
			return c.placing(2000, gpusPerNode, gangs(c.profile(), c.part(20), 32, 1))
		}},
	{"start", "CPU of a start with 63 gangs of 16 that wait, on 2,000 nodes; with stock, without them", againstStock, 7,
		func(c contender) (float64, error) {
			gangs := map[contender]int{berth: 63}[c]
			return c.inWorld(2000, func(w *world) (float64, error) { return w.begin(gangs, 16, false) })
		}},
	{"replay", "CPU for a pod: replay of a queue of gangs and single pods; with stock, without gangs", againstStock, 7,
		contender.replay},
	{"replay-plans", "plans that are made in that replay for each gang that starts", "plans a gang", 1,
		contender.plansPerGang},
	{"packing-cpu", "what the packing cases leave in a family of work that needs much CPU", unallocated, 1,
		idle("8-GPU, much CPU, 30% CPU-only")},
	{"packing-shares", "the same in a family with shares of GPUs", unallocated, 1,
		idle("8-GPU, shares and whole, 90% CPU-only")},
	{"packing-links", "the same where some pods require links that few nodes have", unallocated, 1,
		idle("links: some require links")},
	{"packing-drift", "the same where the work has just changed", unallocated, 1,
		idle("drift: from much CPU to little")},
	{"backlog", "CPU of a second in which 1,000 gangs of 8 wait on 1,000 full nodes and 10 pods end; " + onePlain,
		againstStock, 3, func(c contender) (float64, error) { return c.waiting(gangs(c.profile(), 1000, 8, 1)) }},
	{"backlog-pods", "the same in which 5,000 single pods wait, all alike", againstStock, 3,
		func(c contender) (float64, error) { return c.waiting(singles(c.profile(), 5000, true)) }},
	// The heap is the same in each run.
	{"memory", "heap for each of 2,000 nodes and 8,000 pods", againstStock, 1, func(c contender) (float64, error) {
		return c.inWorld(2000, func(w *world) (float64, error) { return w.heap(8000, 200) })
	}},
}

// OnRequest are figures that take minutes, or that guard nothing.
var OnRequest = []Figure{
	{"gangs-5000", "CPU for a pod: start with 64 gangs of 64 that can run, on 5,000 nodes; with stock, without gangs",
		againstStock, 3, func(c contender) (float64, error) {
			return c.inWorld(5000, func(w *world) (float64, error) { return w.beginAll(gangs(c.profile(), 64, 64, 1)) })
		}},
	{"plain-5000", "CPU for a pod: pods without GPUs, on 5,000 nodes without GPUs", againstStock, 7,
		func(c contender) (float64, error) { return c.placing(5000, 0, plain(c.profile(), 1000)) }},
	{"backlog-distinct", "backlog-pods where no two are alike", againstStock, 3,
		func(c contender) (float64, error) { return c.waiting(singles(c.profile(), 5000, false)) }},
	{"start-gated", "CPU of the same start as start; with stock, the same pods behind a gate", againstStock, 7,
		func(c contender) (float64, error) {
			return c.inWorld(2000, func(w *world) (float64, error) { return w.begin(63, 16, c == stock) })
		}},
	{"start-5000", "CPU for a pod: start with 64 gangs of 64 where one can run, on 5,000 nodes; with stock, a quarter of them",
		againstStock, 1, func(c contender) (float64, error) {
			return c.inWorld(5000, func(w *world) (float64, error) {
				seconds, err := w.begin(c.part(64), 64, false)
				return seconds / float64(c.part(64)*64), err
			})
		}},
}

// idle asks how many GPUs the rule that is installed leaves idle in a family of work. No scheduler runs.
func idle(family string) func(contender) (float64, error) {
	return func(contender) (float64, error) { return packing.Idle(context.Background(), family) }
}

// values measures the figure in processes, in which the schedulers take turns.
func (f *Figure) values(ctx context.Context, profiles string) ([]float64, error) {
	contenders := []contender{berth}
	if f.unit == againstStock {
		contenders = []contender{stock, berth}
	}
	taken := map[contender][]float64{}
	for _, c := range rig.InTurn(contenders, f.runs) {
		// One processor, because idle ones would collect garbage and look for work, in an amount that varies.
		value, err := inProcess[float64](ctx, Child{Name: f.Name, Scheduler: string(c), Profiles: profiles},
			"GOMAXPROCS=1")
		if err != nil {
			return nil, err
		}
		taken[c] = append(taken[c], value)
	}
	values := taken[berth]
	for i, ofStock := range taken[stock] {
		values[i] /= ofStock
	}
	return values, nil
}
