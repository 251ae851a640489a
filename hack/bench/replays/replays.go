// Package replays is what benchmarks share that replay made-up loads with the real scheduler on a virtual clock: a
// cluster, jobs that arrive at random, the variants of a configuration that are compared, and how long jobs waited. A
// program says what loads and variants it compares, and what it reads off each replay.
package replays

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"berth.dev/berth/pkg/replay/replayed"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/trace"
)

// GPUsPerNode is the size of every node.
const GPUsPerNode = 8

// Cluster is a number of nodes that are all alike.
func Cluster(nodes int) []trace.Node {
	list := make([]trace.Node, nodes)
	for i := range list {
		list[i] = trace.Node{Name: fmt.Sprintf("node-%03d", i), CPUMilli: 96_000, MemoryMiB: 786_432, GPUs: GPUsPerNode,
			Model: "NVIDIA-A100-SXM4-80GB", MicroDollarsPerHour: 10_000_000}
	}
	return list
}

// Job has pods that ask for cores and memory by their GPUs.
func Job(name string, arrival, run time.Duration, pods, gpus int) trace.Job {
	return trace.Job{Name: name, Arrival: arrival.Truncate(time.Millisecond), Duration: run.Truncate(time.Millisecond),
		Pods: pods, CPUMilli: int64(gpus) * 4000, MemoryMiB: int64(gpus) * 16384, GPUs: gpus, GPUMilli: 1000}
}

// Arrivals draws a Poisson stream with a mean pause, until a time.
func Arrivals(random *rand.Rand, pause float64, until time.Duration) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		for at := random.ExpFloat64() * pause; at < float64(until); at += random.ExpFloat64() * pause {
			if !yield(time.Duration(at)) {
				return
			}
		}
	}
}

// RunTime draws an exponential run time of at least a second.
func RunTime(random *rand.Rand, mean time.Duration) time.Duration {
	return max(time.Duration(random.ExpFloat64()*float64(mean)), time.Second)
}

// SortByArrival sorts jobs; those of one moment stay in their order.
func SortByArrival(jobs []trace.Job) {
	slices.SortStableFunc(jobs, func(a, b trace.Job) int { return int(a.Arrival - b.Arrival) })
}

// SetWeight gives a plugin that the profiles enable at all extension points another weight, or disables it for 0.
func SetWeight(c *schedulerconfig.Configuration, plugin string, weight int32) {
	for i := range c.Component.Profiles {
		set := &c.Component.Profiles[i].Plugins.MultiPoint
		at := slices.IndexFunc(set.Enabled, func(p schedulerapi.Plugin) bool { return p.Name == plugin })
		switch {
		case at < 0:
		case weight == 0:
			set.Enabled = slices.Delete(set.Enabled, at, at+1)
		default:
			set.Enabled[at].Weight = weight
		}
	}
}

// Wait is how many seconds a job waited, if it has started.
func Wait(r *replayed.Result, job *trace.Job) (seconds float64, started bool) {
	start, started := r.Starts[job.Name]
	return start - job.Arrival.Seconds(), started
}
