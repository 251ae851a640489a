package main

import (
	"context"
	"fmt"
	"io"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/hack/bench/rig"
)

const (
	// sample is over what time the scheduler's CPU is looked at to see whether it has come to rest.
	sample = 10 * time.Second
	// atRest is below what part of a core it has.
	atRest = 0.05
)

// waitInVain measures what gangs cost that wait and can never start, how soon their reasons follow a change of the
// cluster, and how long a gang behind them takes that can start.
func waitInVain(ctx context.Context, bed *rig.Rig, out io.Writer) (any, error) {
	const namespace = "stuck"
	gangs := run{"", coscheduling, noDefaults, true, rig.InstalledGates}
	scheduler, err := ready(ctx, bed, &gangs, namespace)
	if err != nil {
		return nil, err
	}
	defer scheduler.Stop()
	// More than a node has.
	tooMuch := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1"), "nvidia.com/gpu": resource.MustParse("16")}
	if err := rig.CreateAll(*stuck, func(i int) error {
		return createGang(ctx, bed, namespace, fmt.Sprintf("never%d", i), tooMuch, gangOf{2, true, ""})
	}); err != nil {
		return nil, err
	}
	var figures stuckFigures
	settling := time.Now()
	for {
		load, err := load(ctx, scheduler, sample)
		if err != nil {
			return nil, err
		}
		if load < atRest {
			break
		}
	}
	figures.AtRestSeconds = time.Since(settling).Seconds()
	_, _ = fmt.Fprintf(out, "%d nodes, %d gangs of 2 that can never start; at rest %.0f s after the last was created\n",
		*nodes, *stuck, figures.AtRestSeconds)
	if figures.CoresAtRest, err = load(ctx, scheduler, *rest); err != nil {
		return nil, err
	}
	_, _ = fmt.Fprintf(out, "scheduler CPU at rest, over %s: %.2f%% of a core\n", *rest, 100*figures.CoresAtRest)
	if figures.Changes, err = followChanges(ctx, bed, scheduler, namespace, out); err != nil {
		return nil, err
	}
	for repeat := range *repeats {
		ahead := fmt.Sprintf("ahead-%d", repeat)
		if err := bed.Namespace(ctx, ahead); err != nil {
			return nil, err
		}
		if err := createGang(ctx, bed, ahead, "small", rig.OneGPU(), gangOf{2, true, ""}); err != nil {
			return nil, err
		}
		created := time.Now()
		if err := bed.AwaitBound(ctx, ahead, 2); err != nil {
			return nil, err
		}
		took := time.Since(created).Seconds()
		figures.StartSeconds = append(figures.StartSeconds, took)
		_, _ = fmt.Fprintf(out, "a gang behind them that can start was bound %.1f s after its last member was created\n",
			took)
	}
	return figures, nil
}

// load is the part of a core that the scheduler uses over some time.
func load(ctx context.Context, scheduler *rig.Scheduler, d time.Duration) (float64, error) {
	before, err := scheduler.CPU()
	if err != nil {
		return 0, err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	began := time.Now()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	after, err := scheduler.CPU()
	if err != nil {
		return 0, err
	}
	return (after - before).Seconds() / time.Since(began).Seconds(), nil
}
