package main

import (
	"fmt"
	"io"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/hack/bench/live"
	"berth.dev/berth/hack/bench/rig"
)

const (
	// sample is over what time the scheduler's CPU is looked at to see whether it has come to rest.
	sample = 10 * time.Second
	// atRest is below what part of a core it has.
	atRest = 0.05
)

// stuckFigures are what gangs cost that can never start.
type stuckFigures struct {
	// AtRestSeconds is how long after the last gang the scheduler came to rest, CoresAtRest what it used then.
	AtRestSeconds float64         `json:"atRestSeconds"`
	CoresAtRest   float64         `json:"coresAtRest"`
	Changes       []changeFigures `json:"changes"`
	// StartSeconds is how long each gang took that could start.
	StartSeconds []float64 `json:"startSeconds"`
}

// waitForever measures what gangs cost that wait and can never start, how soon their reasons follow a change of the
// cluster, and how long a gang behind them takes that can start.
func waitForever(bed *live.Bed, out io.Writer) any {
	const namespace = "stuck"
	scheduler, _ := bed.Ready(asInstalled.Contender, warmPod(namespace))
	defer scheduler.Stop()
	// More than a node has.
	tooMuch := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1"), "nvidia.com/gpu": resource.MustParse("16")}
	live.CreateAll(*stuck, func(i int) { gang{namespace, fmt.Sprintf("never%d", i), 2, tooMuch, ""}.create(bed, true) })
	cores := func(d time.Duration) float64 {
		use := bed.Measure(scheduler, func() { bed.Pause(d) })
		return use.SchedulerCPU.Seconds() / use.Seconds
	}
	var figures stuckFigures
	settling := time.Now()
	for cores(sample) >= atRest {
		rig.Progress("the scheduler is not at rest yet")
	}
	figures.AtRestSeconds = time.Since(settling).Seconds()
	_, _ = fmt.Fprintf(out, "%d nodes, %d gangs of 2 that can never start; at rest %.0f s after the last was created\n",
		*nodes, *stuck, figures.AtRestSeconds)
	figures.CoresAtRest = cores(*rest)
	_, _ = fmt.Fprintf(out, "scheduler CPU at rest, over %s: %.2f%% of a core\n", *rest, 100*figures.CoresAtRest)
	figures.Changes = followChanges(bed, scheduler, namespace)
	rig.Fail(rig.Table(out, figures.Changes))
	for repeat := range *repeats {
		ahead := fmt.Sprintf("ahead-%d", repeat)
		bed.Namespace(ahead)
		bound := bed.Watch(ahead)
		gang{ahead, "small", 2, live.GPUs(1), ""}.create(bed, true)
		created := time.Now()
		bound.Await(2, scheduler)
		took := time.Since(created).Seconds()
		figures.StartSeconds = append(figures.StartSeconds, took)
		_, _ = fmt.Fprintf(out, "a gang behind them that can start was bound %.1f s after its last member was created\n",
			took)
	}
	return figures
}
