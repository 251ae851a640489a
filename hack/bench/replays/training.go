package replays

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"berth.dev/berth/pkg/replay/replayed"
	"berth.dev/berth/pkg/trace"
)

// TrainingNodes are nodes that only run short of GPUs.
func TrainingNodes(n int) []trace.Node {
	nodes := make([]trace.Node, n)
	for i := range nodes {
		nodes[i] = trace.Node{Name: fmt.Sprintf("n%03d", i), CPUMilli: 128_000, MemoryMiB: 1 << 20, GPUs: GPUsPerNode}
	}
	return nodes
}

// TrainingJob is the i-th job, of a number of GPUs. Of more than a node has it is a gang of whole nodes. Half of the jobs
// save their work every 30 minutes, four tenths every hour, and a tenth never.
func TrainingJob(i int, arrival, run time.Duration, gpus int) trace.Job {
	j := trace.Job{Name: fmt.Sprintf("j%05d", i), Arrival: arrival, Duration: run, Pods: 1, CPUMilli: 1000,
		MemoryMiB: 1024, GPUs: gpus, GPUMilli: 1000}
	if gpus > GPUsPerNode {
		j.Gang, j.Pods, j.GPUs = true, (gpus+GPUsPerNode-1)/GPUsPerNode, GPUsPerNode
	}
	switch n := Drawn(j.Name, "checkpoint") % 10; {
	case n < 5:
		j.CheckpointEvery = 30 * time.Minute
	case n < 9:
		j.CheckpointEvery = time.Hour
	}
	return j
}

// ReadTraining reads the jobs of a trace that arrive within a part of it and ask for half of the nodes at most, with what
// the trace says of each.
func ReadTraining(path string, nodes int, from, until time.Duration) ([]trace.Job, []Published, error) {
	published, err := ReadPublished(path)
	if err != nil {
		return nil, nil, err
	}
	var jobs []trace.Job
	var said []Published
	for i, p := range published {
		at, run := Seconds(p.SubmitSeconds), Seconds(p.RunSeconds)
		if at >= from && at < until && p.GPUs > 0 && run > 0 && p.GPUs <= nodes*GPUsPerNode/2 {
			jobs, said = append(jobs, TrainingJob(i, at-from, run, p.GPUs)), append(said, p)
		}
	}
	return jobs, said, nil
}

// Seconds is a number of seconds.
func Seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Drawn is a number that is always the same for a job, and another one for something else about it.
func Drawn(job, what string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(what + job)) // never fails
	return h.Sum32() >> 7
}

// Waits says how many minutes the jobs that count have waited for their first start: mean / median / 95th percentile.
// Those that have not started count until the end.
func Waits(jobs []trace.Job, r *replayed.Result, counts func(*trace.Job) bool) string {
	var minutes []float64
	sum := 0.0
	for i := range jobs {
		job := &jobs[i]
		if !counts(job) || job.Arrival.Seconds() > r.VirtualSeconds {
			continue
		}
		seconds, started := Wait(r, job)
		if !started {
			seconds = r.VirtualSeconds - job.Arrival.Seconds()
		}
		minutes = append(minutes, seconds/60)
		sum += seconds / 60
	}
	if len(minutes) == 0 {
		return "–"
	}
	slices.Sort(minutes)
	return fmt.Sprintf("%.1f / %.1f / %.1f", sum/float64(len(minutes)), minutes[len(minutes)/2], minutes[len(minutes)*95/100])
}
