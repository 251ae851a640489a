// Package trace reads the input files of a replay: tables of nodes, traces of jobs and tables of prices.
//
// Replays call it. Invalid input is an error of one line that starts with the file and the line and names the column,
// the value and what is allowed. Nothing is guessed, clamped or skipped.
package trace

import (
	"fmt"
	"time"
)

// Node is one node of a replayed cluster.
type Node struct {
	Name      string
	CPUMilli  int64
	MemoryMiB int64
	GPUs      int
	// Model is the GPU product, as in the label nvidia.com/gpu.product; empty without GPUs.
	Model string
	// MicroDollarsPerHour is the node's price; 0 is unknown.
	MicroDollarsPerHour int64
	Spot                bool
	Rack, Zone          string
}

// Job is a set of equal pods that arrive together.
type Job struct {
	Name string
	// Arrival is the time since the start of the trace.
	Arrival time.Duration
	// Duration is how long a pod (a gang: the whole gang) runs once it is bound; 0 if it never ends.
	Duration time.Duration
	Pods     int
	// The requests of one pod.
	CPUMilli  int64
	MemoryMiB int64
	// GPUs is the number of GPUs of one pod and GPUMilli what it takes of each: below 1000 only when GPUs is 1.
	GPUs     int
	GPUMilli int
	// Models lists the acceptable GPU products; empty is any.
	Models []string
	// Gang says that the pods start together or not at all.
	Gang     bool
	Priority int32
	// Spot is the pods' policy for spot capacity: tolerate, require, avoid, or empty for the profile's default.
	Spot string
	// Namespace of the pods; empty for the replay's own.
	Namespace string
	// Labels of the pods.
	Labels map[string]string
	// CheckpointEvery is how often the pods save their work while they run, 0 if they never do.
	CheckpointEvery time.Duration
	// RunTime is how long the pods declare to run, 0 if they do not.
	RunTime time.Duration
}

// MilliGPU is what one pod of the job takes, in thousandths of a GPU.
func (j *Job) MilliGPU() int64 { return int64(j.GPUs) * int64(j.GPUMilli) }

// PodName is the name of the job's pod number index. A single pod has the name of the job.
func (j *Job) PodName(index int) string {
	if j.Pods > 1 || j.Gang {
		return fmt.Sprintf("%s-%d", j.Name, index)
	}
	return j.Name
}

// Limits of the readers: a larger value is taken for a mistake.
const (
	maxCPUMilli  = 1_000_000_000
	maxMemoryMiB = 1 << 40
	maxGPUs      = 1024
	maxPods      = 1_000_000
	maxCount     = 1_000_000
	maxSeconds   = 100 * 365 * 24 * 3600
	maxName      = 200
)

// Error is what a reader finds wrong with a file.
type Error struct {
	File string
	// Line is 1 for the first line, 0 for an error of the whole file.
	Line int
	Err  error
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }
