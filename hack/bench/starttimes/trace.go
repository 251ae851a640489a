package main

import (
	"berth.dev/berth/hack/bench/replays"
	"berth.dev/berth/pkg/starttime"
)

// gpusPerNode is the size of every node. A job of more GPUs is a gang whose members take whole nodes.
const gpusPerNode = 8

// job is one job of a trace. Times are in seconds.
type job struct {
	id          int
	user        string
	submit, run float64
	gpus        int
	// due is by when after its arrival it is to end, 0 if that does not matter.
	due        float64
	start, end float64
	nodes      []int
	// told is the start that was told first, at toldAt.
	told     starttime.Told
	toldAt   float64
	toldOnce bool
}

// members is the number of whole nodes that a gang needs, 0 for a job that fits on one node.
func (j *job) members() int {
	if j.gpus <= gpusPerNode {
		return 0
	}
	return (j.gpus + gpusPerNode - 1) / gpusPerNode
}

// readTrace reads a published trace. Jobs without GPUs are left out.
func readTrace(path string) ([]job, error) {
	published, err := replays.ReadPublished(path)
	if err != nil {
		return nil, err
	}
	var jobs []job
	for _, p := range published {
		if p.GPUs > 0 {
			jobs = append(jobs, job{id: len(jobs), user: p.User, submit: p.SubmitSeconds, run: max(p.RunSeconds, 1),
				gpus: p.GPUs, due: dueOf(&p)})
		}
	}
	return jobs, nil
}

// dueOf is the deadline of a job; that of best-effort jobs does not matter.
func dueOf(p *replays.Published) float64 {
	if p.BestEffort == "1" {
		return 0
	}
	return p.DeadlineSeconds
}
