package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"berth.dev/berth/hack/bench/replays"
	"berth.dev/berth/pkg/trace"
)

// gangTime is how long most gangs run.
const gangTime = 30 * time.Minute

// gangShare is the part of the cluster's GPU time that gangs ask for.
const gangShare = 0.075

// family is a kind of load. The cluster is offered load of its GPU time, gangs included.
type family struct {
	name string
	load float64
	// mean is how long a job runs on average; run times are exponential.
	mean time.Duration
	// sizes are the GPUs of jobs, each as likely as it is often in the list.
	sizes []int
	// together is how many gangs arrive at once, and gang how long each runs.
	together int
	gang     time.Duration
}

// Describe is for the flag that chooses among the families.
func (f *family) Describe() (name, description string) {
	return f.name, fmt.Sprintf("%.1f%% load, jobs of %v GPUs for %s", 100*f.load, f.sizes, f.mean)
}

var families = []*family{
	{"small", 0.90, 10 * time.Minute, []int{1, 2}, 1, gangTime},
	{"mixed", 0.90, 10 * time.Minute, []int{1, 1, 1, 1, 1, 2, 2, 2, 4, 8}, 1, gangTime},
	{"half-hour", 0.90, 30 * time.Minute, []int{1, 2}, 1, 3 * gangTime},
	{"half-hour with short gangs", 0.90, 30 * time.Minute, []int{1, 2}, 1, gangTime},
	{"two gangs", 0.90, 10 * time.Minute, []int{1, 2}, 2, gangTime},
	{"97.5% load", 0.975, 10 * time.Minute, []int{1, 2}, 1, gangTime},
	{"overload", 1.05, 10 * time.Minute, []int{1, 2}, 1, gangTime},
}

// warmUp is how long the cluster fills before the first gang arrives.
func (f *family) warmUp() time.Duration { return 4 * f.mean }

// length is how long the trace is, if it is as long as given for gangs that run for gangTime.
func (f *family) length(base time.Duration) time.Duration {
	return time.Duration(float64(base) * f.gang.Hours() / gangTime.Hours())
}

// jobs draws the jobs of a family for a number of nodes: a Poisson stream of single pods, and gangs of a quarter of the
// nodes at fixed times.
func (f *family) jobs(nodes int, length time.Duration, seed uint64) []trace.Job {
	random := rand.New(rand.NewPCG(seed, 1))
	sum := 0
	for _, n := range f.sizes {
		sum += n
	}
	perJob := float64(sum) / float64(len(f.sizes)) * float64(f.mean)
	pause := perJob / ((f.load - gangShare) * float64(nodes*replays.GPUsPerNode))
	var jobs []trace.Job
	for at := range replays.Arrivals(random, pause, length) {
		run := replays.RunTime(random, f.mean)
		jobs = append(jobs, replays.Job(fmt.Sprintf("job-%d", len(jobs)), at, run, 1, f.sizes[random.IntN(len(f.sizes))]))
	}
	members := nodes / 4
	every := time.Duration(float64(f.together*members) / (gangShare * float64(nodes)) * float64(f.gang))
	for at, n := f.warmUp(), 0; at < length-every/2; at += every {
		for range f.together {
			gang := replays.Job(fmt.Sprintf("gang-%d", n), at, f.gang, members, replays.GPUsPerNode)
			gang.Gang = true
			jobs = append(jobs, gang)
			n++
		}
	}
	replays.SortByArrival(jobs)
	return jobs
}
