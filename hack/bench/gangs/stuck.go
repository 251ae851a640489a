package main

import (
	"context"
	"fmt"
	"io"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/hack/bench/live"
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
func waitForever(ctx context.Context, bed *live.Bed, out io.Writer) (any, error) {
	const namespace = "stuck"
	scheduler, _, err := bed.Ready(ctx, asInstalled.Contender, namespace, warmPod(namespace))
	if err != nil {
		return nil, err
	}
	defer scheduler.Stop()
	// More than a node has.
	tooMuch := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1"), "nvidia.com/gpu": resource.MustParse("16")}
	if err := live.CreateAll(*stuck, func(i int) error {
		return gang{namespace, fmt.Sprintf("never%d", i), 2, tooMuch, ""}.create(ctx, bed, true)
	}); err != nil {
		return nil, err
	}
	cores := func(d time.Duration) (float64, error) {
		use, err := bed.Measure(ctx, scheduler, func() error { return live.Pause(ctx, d) })
		if err != nil {
			return 0, err
		}
		return use.SchedulerCPU.Seconds() / use.Seconds, nil
	}
	var figures stuckFigures
	settling := time.Now()
	for load := 1.0; load >= atRest; {
		if load, err = cores(sample); err != nil {
			return nil, err
		}
	}
	figures.AtRestSeconds = time.Since(settling).Seconds()
	_, _ = fmt.Fprintf(out, "%d nodes, %d gangs of 2 that can never start; at rest %.0f s after the last was created\n",
		*nodes, *stuck, figures.AtRestSeconds)
	if figures.CoresAtRest, err = cores(*rest); err != nil {
		return figures, err
	}
	_, _ = fmt.Fprintf(out, "scheduler CPU at rest, over %s: %.2f%% of a core\n", *rest, 100*figures.CoresAtRest)
	if figures.Changes, err = followChanges(ctx, bed, scheduler, namespace); err != nil {
		return figures, err
	}
	if err := printChanges(out, figures.Changes); err != nil {
		return figures, err
	}
	for repeat := range *repeats {
		ahead := fmt.Sprintf("ahead-%d", repeat)
		if err := bed.Namespace(ctx, ahead); err != nil {
			return figures, err
		}
		bound, err := bed.Watch(ctx, ahead)
		if err != nil {
			return figures, err
		}
		if err := (gang{ahead, "small", 2, live.GPUs(1), ""}).create(ctx, bed, true); err != nil {
			return figures, err
		}
		created := time.Now()
		if err := bound.Await(ctx, 2, scheduler); err != nil {
			return figures, err
		}
		took := time.Since(created).Seconds()
		figures.StartSeconds = append(figures.StartSeconds, took)
		_, _ = fmt.Fprintf(out, "a gang behind them that can start was bound %.1f s after its last member was created\n",
			took)
	}
	return figures, nil
}
