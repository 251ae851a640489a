package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
)

// moveArrivals has all jobs arrive up to two hours later, so that chance decides less; with seed 0 it changes nothing.
func moveArrivals(jobs []job, seed uint64) []job {
	moved := slices.Clone(jobs)
	if seed > 0 {
		r := rand.New(rand.NewPCG(seed, 7))
		for i := range moved {
			moved[i].submit += r.Float64() * 7200
		}
		byArrival(moved)
	}
	return moved
}

func byArrival(jobs []job) {
	slices.SortStableFunc(jobs, func(a, b job) int { return cmp.Compare(a.submit, b.submit) })
}

// shuffled is a trace whose jobs of each size have exchanged their run times.
func (b *bench) shuffled(file string, nodes int) scenario {
	s := b.trace(file, nodes)
	read := s.read
	s.name += ", shuffled"
	s.read = func() ([]job, error) {
		jobs, err := read()
		sizes := map[int][]int{}
		for i := range jobs {
			sizes[jobs[i].gpus] = append(sizes[jobs[i].gpus], i)
		}
		r := rand.New(rand.NewPCG(1, 9))
		for i := range jobs {
			of := sizes[jobs[i].gpus]
			k := of[r.IntN(len(of))]
			jobs[i].run, jobs[k].run = jobs[k].run, jobs[i].run
		}
		return jobs, err
	}
	return s
}

// synthetic are streams of small jobs with exponential run times of 10 minutes on average, at 90% load with gangs of 30
// minutes, which ask for 7.5% of the GPU time.
func synthetic() []scenario {
	const nodes, load, gangShare, mean = 32, 0.9, 0.075, 600.0
	var out []scenario
	for _, members := range []int{8, 20, nodes} {
		out = append(out, scenario{fmt.Sprintf("small jobs, gangs of %d of %d", members, nodes), nodes, func() ([]job, error) {
			r := rand.New(rand.NewPCG(1, 1))
			const length = 86400.0
			var jobs []job
			every := float64(members) / (gangShare * nodes) * 1800
			for at := 4 * mean; at < length; at += every {
				jobs = append(jobs, job{id: len(jobs), submit: at, run: 1800, gpus: members * gpusPerNode})
			}
			for at := 0.0; at < length; at += r.ExpFloat64() * 1.5 * mean / ((load - gangShare) * nodes * gpusPerNode) {
				jobs = append(jobs, job{id: len(jobs), submit: at, run: max(r.ExpFloat64()*mean, 1), gpus: 1 + r.IntN(2)})
			}
			byArrival(jobs)
			return jobs, nil
		}})
	}
	return out
}
