package main

import (
	"fmt"

	"berth.dev/berth/pkg/trace"
)

// family is a priced cluster with work for it.
type family struct {
	name  string
	nodes []trace.Node
	jobs  []trace.Job
}

// nodeGroup is a number of equal nodes.
type nodeGroup struct {
	model       string
	gpus, count int
	cores       int64
	dollars     float64
	spot        bool
}

// fleets are the priced clusters, of 400 GPUs each.
var fleets = []struct {
	name   string
	groups []nodeGroup
}{
	{"4 and 8 GPUs, one price per GPU", []nodeGroup{{"A", 4, 50, 48, 4, false}, {"A", 8, 25, 96, 8, false}}},
	{"two models, the large node cheaper per GPU",
		[]nodeGroup{{"T4", 4, 50, 32, 4, false}, {"A100", 8, 25, 96, 6.4, false}}},
	{"half spot at two fifths of the price", []nodeGroup{{"A", 8, 25, 96, 8, false}, {"A", 8, 25, 96, 3.2, true}}},
}

// portion is how many of a hundred pods ask for so much.
type portion struct{ pods, gpus, gpuMilli int }

var works = []struct {
	name string
	of   []portion
}{
	{"whole GPUs, 60% CPU-only", []portion{{60, 0, 0}, {20, 1, 1000}, {10, 2, 1000}, {6, 4, 1000}, {4, 8, 1000}}},
	{"shares, 30% CPU-only", []portion{{30, 0, 0}, {15, 1, 250}, {15, 1, 500}, {10, 1, 700}, {18, 1, 1000}, {6, 2, 1000},
		{6, 4, 1000}}},
}

const (
	// coresPerGPU is half of what comes with a GPU where it comes with the fewest cores, and cpuOnlyCores the mean of a
	// pod without GPUs.
	coresPerGPU, cpuOnlyCores = 4, 2
	// memoryPerCore, in MiB, is on the nodes twice what pods ask for, so that it never decides.
	memoryPerCore = 4096
	// jobsOfFamily is how many jobs there are before they repeat.
	jobsOfFamily = 1200
)

// families lists all combinations. All pods tolerate spot capacity, so that the bound holds.
func families() []family {
	var all []family
	for _, fleet := range fleets {
		for _, work := range works {
			f := family{name: fleet.name + "; " + work.name, jobs: jobsOf(work.of)}
			for g, group := range fleet.groups {
				for i := range group.count {
					f.nodes = append(f.nodes, trace.Node{
						Name: fmt.Sprintf("node-%d-%d", g, i), CPUMilli: 1000 * group.cores, MemoryMiB: 2 * memoryPerCore * group.cores,
						GPUs: group.gpus, Model: group.model, MicroDollarsPerHour: int64(1e6 * group.dollars), Spot: group.spot,
					})
				}
			}
			all = append(all, f)
		}
	}
	return all
}

// jobsOf makes one job a pod, in exact proportions and with three amounts of CPU.
func jobsOf(portions []portion) []trace.Job {
	var jobs []trace.Job
	for _, p := range portions {
		for i := range p.pods * jobsOfFamily / 100 {
			cpu := 1000 * cpuOnlyCores
			if p.gpus > 0 {
				cpu = coresPerGPU * p.gpus * p.gpuMilli
			}
			cpu = cpu * (3 + 2*(i%3)) / 5
			jobs = append(jobs, trace.Job{
				Name: fmt.Sprintf("job-%d", len(jobs)), Pods: 1, CPUMilli: int64(cpu), MemoryMiB: int64(cpu) * memoryPerCore / 1000,
				GPUs: p.gpus, GPUMilli: p.gpuMilli, Spot: "tolerate",
			})
		}
	}
	return jobs
}
