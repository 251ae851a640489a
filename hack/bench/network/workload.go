package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/replay"
	"berth.dev/berth/pkg/trace"
)

// workload draws pods and says which of them talk to each other, and which gangs do so in a ring.
type workload struct {
	name, description string
	make              func(*rand.Rand, []runtime.Object) (replay.Input, []pair, []ring)
}

// Describe is for the flag that chooses among the workloads.
func (w workload) Describe() (name, description string) { return w.name, w.description }

var workloads = []workload{
	{"gangs", "a day of churn with gangs", gangs(false)},
	{"ranks", "the same, with gangs whose pods are numbered", gangs(true)},
}

// gangs is a day of churn: four of five GPUs are asked for by gangs of 2 to 32 pods of 2, 4 or 8 GPUs, the others by
// single pods. The pods of a ranked gang are numbered as those of an indexed Job.
func gangs(ranked bool) func(*rand.Rand, []runtime.Object) (replay.Input, []pair, []ring) {
	return func(random *rand.Rand, objects []runtime.Object) (replay.Input, []pair, []ring) {
		return drawGangs(random, objects, ranked)
	}
}

func drawGangs(random *rand.Rand, objects []runtime.Object, ranked bool) (replay.Input, []pair, []ring) {
	in := replay.Input{Name: "gangs", Objects: objects}
	var rings []ring
	var pairs []pair
	const day = 24 * time.Hour
	const mean = 2 * time.Hour
	// GPU hours to offer, so that the load holds in the mean.
	left := float64(*load) / 100 * 8 * float64(len(objects)) * day.Hours()
	for i := 0; left > 0; i++ {
		j := trace.Job{Name: fmt.Sprintf("j%05d", i), Pods: 1, GPUs: 1 << random.IntN(4), GPUMilli: 1000,
			Arrival:  time.Duration(random.Float64() * float64(day)),
			Duration: time.Duration((0.1 + random.ExpFloat64()) * float64(mean)).Truncate(time.Second)}
		if random.IntN(5) == 0 {
			j.Gang, j.Ranked, j.Pods, j.GPUs = true, ranked, 1<<(1+random.IntN(5)), 2<<random.IntN(3)
			var pods ring
			for a := range j.Pods {
				pods = append(pods, fmt.Sprintf("replay/%s-%d", j.Name, a))
				for b := range a {
					pairs = append(pairs, pair{fmt.Sprintf("replay/%s-%d", j.Name, a), fmt.Sprintf("replay/%s-%d", j.Name, b)})
				}
			}
			rings = append(rings, pods)
		}
		j.CPUMilli, j.MemoryMiB = 8000*int64(j.GPUs), 64<<10*int64(j.GPUs)
		left -= float64(j.GPUs*j.Pods) * j.Duration.Hours()
		in.Jobs = append(in.Jobs, j)
	}
	slices.SortFunc(in.Jobs, func(a, b trace.Job) int { return int(a.Arrival - b.Arrival) })
	return in, pairs, rings
}
