package main

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"time"

	"berth.dev/berth/hack/bench/replays"
	"berth.dev/berth/pkg/trace"
)

// load is a part of a trace, or a drawn one, on a number of nodes of 8 GPUs.
type load struct {
	// name is that of the file, or of a churn.
	name        string
	nodes       int
	from, until time.Duration
	// drawn are the sizes of jobs of a churn; those of more GPUs than a node has are gangs. seed draws them.
	drawn []int
	seed  uint64
}

const (
	day         = 24 * time.Hour
	gpusPerNode = replays.GPUsPerNode
)

// mixed and large are sizes of jobs, as often as they come.
var (
	mixed = []int{1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 8, 8, 8, 16, 32}
	large = []int{1, 1, 1, 1, 1, 1, 2, 2, 4, 4, 8, 16, 64}
)

var loads = []load{
	{name: "itp/cluster02.csv", nodes: 6, from: 10 * day, until: 24 * day},
	{name: "itp/cluster03.csv", nodes: 13, from: 10 * day, until: 24 * day},
	{name: "philly/mix1.csv", nodes: 52, from: 2 * day, until: 4 * day},
	{name: "churn with gangs of 16 and 32", nodes: 24, until: 2 * day, drawn: mixed, seed: 1},
	{name: "churn with gangs of 16 and 64", nodes: 24, until: 2 * day, drawn: large, seed: 2},
}

// jobs returns the jobs that arrive within the time of the load. Limits has them declare more than they run.
func (l *load) jobs(data string, limits bool) ([]trace.Job, error) {
	var jobs []trace.Job
	if l.drawn != nil {
		jobs = l.draw()
	} else {
		var err error
		if jobs, _, err = replays.ReadTraining(filepath.Join(data, l.name), l.nodes, l.from, l.until); err != nil {
			return nil, err //nolint:wrapcheck // it names the file
		}
	}
	for i := range jobs {
		j := &jobs[i]
		j.RunTime = max(j.Duration, time.Second)
		if limits {
			j.RunTime *= time.Duration(1 + replays.Drawn(j.Name, "limit")%5)
		}
	}
	return jobs, nil
}

// offered is what the jobs of a churn ask for, as a part of the GPUs: within the time it is about 95%, as the last jobs
// run on after it.
const offered = 1.07

// draw draws jobs. Their run times are of two hours in the mean, and a few much longer.
func (l *load) draw() []trace.Job {
	r := rand.New(rand.NewPCG(l.seed, 0))
	const mean, sigma = 2 * time.Hour, 1.2
	gpus := 0
	for _, size := range l.drawn {
		gpus += size
	}
	work := float64(gpus) / float64(len(l.drawn)) * mean.Seconds()
	every := work / (offered * float64(l.nodes*gpusPerNode))
	var jobs []trace.Job
	for at := time.Duration(0); at < l.until; at += replays.Seconds(r.ExpFloat64() * every) {
		ran := mean.Seconds() * math.Exp(sigma*r.NormFloat64()-sigma*sigma/2)
		jobs = append(jobs, replays.TrainingJob(len(jobs), at, replays.Seconds(min(max(ran, 60), 86400)), l.drawn[r.IntN(len(l.drawn))]))
	}
	return jobs
}
