package main

import (
	"fmt"
	"io"
)

// runFigures are those of one run of the same pods.
type runFigures struct {
	Run             string  `json:"run"`
	Repeat          int     `json:"repeat"`
	PodsPerSecond   float64 `json:"podsPerSecond"`
	CPUMillisPerPod float64 `json:"cpuMillisPerPod"`
	RequestsPerPod  float64 `json:"requestsPerPod"`
}

// waitFigures are how long other pods waited in a phase, and what the scheduler did in it; what was not measured is
// left out.
type waitFigures struct {
	Phase               string  `json:"phase"`
	MedianMillis        float64 `json:"medianMillis"`
	P99Millis           float64 `json:"p99Millis"`
	MostMillis          float64 `json:"mostMillis"`
	Pods                int     `json:"pods"`
	Seconds             float64 `json:"seconds,omitempty"`
	SchedulerCPUSeconds float64 `json:"schedulerCPUSeconds,omitempty"`
	// LongestCycleMillis is the bound of the histogram's bucket in which the longest scheduling cycle is.
	LongestCycleMillis float64 `json:"longestCycleMillis,omitempty"`
	Plans              uint64  `json:"plans,omitempty"`
	PlanSeconds        float64 `json:"planSeconds,omitempty"`
	AllBoundSeconds    float64 `json:"allBoundSeconds,omitempty"`
	EditsPerSecond     float64 `json:"editsPerSecond,omitempty"`
}

// figures summarize the waits of a phase, at least one.
func (w waits) figures(phase string) waitFigures {
	at := func(percent int) float64 {
		return float64(w.all[min(len(w.all)-1, len(w.all)*percent/100)].Microseconds()) / 1000
	}
	return waitFigures{Phase: phase, MedianMillis: at(50), P99Millis: at(99), MostMillis: at(100), Pods: len(w.all)}
}

const waitHeader = "%-48s %10s %10s %10s %10s\n"

func (f *waitFigures) print(out io.Writer) {
	_, _ = fmt.Fprintf(out, "%-48s %10.0f %10.0f %10.0f %10d\n", f.Phase, f.MedianMillis, f.P99Millis, f.MostMillis,
		f.Pods)
}

// stuckFigures are what gangs cost that can never start.
type stuckFigures struct {
	// AtRestSeconds is how long after the last gang the scheduler came to rest, CoresAtRest what it used then.
	AtRestSeconds float64         `json:"atRestSeconds"`
	CoresAtRest   float64         `json:"coresAtRest"`
	Changes       []changeFigures `json:"changes"`
	// StartSeconds is how long each gang took that could start.
	StartSeconds []float64 `json:"startSeconds"`
}

// changeFigures are how soon what is written follows a change of the cluster.
type changeFigures struct {
	Change                 string        `json:"change"`
	SchedulerCPUSeconds    float64       `json:"schedulerCPUSeconds"`
	ControlPlaneCPUSeconds float64       `json:"controlPlaneCPUSeconds"`
	PodGroups              followFigures `json:"podGroups"`
	Members                followFigures `json:"members"`
}

// followFigures are after how many seconds objects said what is true.
type followFigures struct {
	Median float64 `json:"medianSeconds"`
	P99    float64 `json:"p99Seconds"`
	Last   float64 `json:"lastSeconds"`
}
