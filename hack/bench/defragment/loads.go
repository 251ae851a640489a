package main

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"berth.dev/berth/hack/bench/replays"
	"berth.dev/berth/pkg/replay/replayed"
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

func (l *load) cluster() []trace.Node {
	nodes := make([]trace.Node, l.nodes)
	for i := range nodes {
		nodes[i] = trace.Node{Name: fmt.Sprintf("n%03d", i), CPUMilli: 128_000, MemoryMiB: 1 << 20, GPUs: gpusPerNode}
	}
	return nodes
}

// jobs returns the jobs that arrive within the time of the load. Limits has them declare more than they run.
func (l *load) jobs(data string, limits bool) ([]trace.Job, error) {
	var jobs []trace.Job
	if l.drawn != nil {
		jobs = l.draw()
	} else {
		published, err := replays.ReadPublished(filepath.Join(data, l.name))
		if err != nil {
			return nil, err //nolint:wrapcheck // it names the file
		}
		for i, p := range published {
			at, ran := seconds(p.SubmitSeconds), seconds(p.RunSeconds)
			if at >= l.from && at < l.until && p.GPUs > 0 && ran > 0 && p.GPUs <= l.nodes*gpusPerNode/2 {
				jobs = append(jobs, job(i, at-l.from, ran, p.GPUs))
			}
		}
	}
	for i := range jobs {
		j := &jobs[i]
		j.RunTime = max(j.Duration, time.Second)
		if limits {
			j.RunTime *= time.Duration(1 + hash(j.Name, "limit")%5)
		}
		switch n := hash(j.Name, "checkpoint") % 10; {
		case n < 5:
			j.CheckpointEvery = 30 * time.Minute
		case n < 9:
			j.CheckpointEvery = time.Hour
		}
	}
	return jobs, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// job is one of a number of GPUs. Of more than a node has it is a gang of whole nodes.
func job(i int, at, ran time.Duration, gpus int) trace.Job {
	j := trace.Job{Name: fmt.Sprintf("j%05d", i), Arrival: at, Duration: ran, Pods: 1, CPUMilli: 1000, MemoryMiB: 1024,
		GPUs: gpus, GPUMilli: 1000}
	if gpus > gpusPerNode {
		j.Gang, j.Pods, j.GPUs = true, (gpus+gpusPerNode-1)/gpusPerNode, gpusPerNode
	}
	return j
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
	for at := time.Duration(0); at < l.until; at += seconds(r.ExpFloat64() * every) {
		ran := mean.Seconds() * math.Exp(sigma*r.NormFloat64()-sigma*sigma/2)
		jobs = append(jobs, job(len(jobs), at, seconds(min(max(ran, 60), 86400)), l.drawn[r.IntN(len(l.drawn))]))
	}
	return jobs
}

// hash is a number that is always the same for a job.
func hash(job, what string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(what + job)) // never fails
	return h.Sum32() >> 7
}

// waits says how long gangs, or the others, have waited for their first start. Those that have not started count until
// the end.
func waits(jobs []trace.Job, out *replayed.Result, gangs bool) string {
	var all []float64
	sum := 0.0
	for i := range jobs {
		if jobs[i].Gang != gangs || jobs[i].Arrival.Seconds() > out.VirtualSeconds {
			continue
		}
		start, started := out.Starts[jobs[i].Name]
		if !started {
			start = out.VirtualSeconds
		}
		wait := (start - jobs[i].Arrival.Seconds()) / 60
		all = append(all, wait)
		sum += wait
	}
	if len(all) == 0 {
		return "–"
	}
	slices.Sort(all)
	return fmt.Sprintf("%.1f / %.1f / %.1f", sum/float64(len(all)), all[len(all)/2], all[len(all)*95/100])
}
