package main

import (
	"context"
	"fmt"
	"io"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"berth.dev/berth/hack/bench/live"
	"berth.dev/berth/hack/bench/rig"
)

// calm is how long the probes go on before the first gang comes, and after each.
const calm = 20 * time.Second

// preemptForGangs measures how long pods wait that have nothing to do with it while gangs evict pods: the cluster is
// full of pods of one GPU and low priority, and each gang takes a whole node for each of its members.
func preemptForGangs(ctx context.Context, bed *live.Bed, out io.Writer) (any, error) {
	const namespace = "preempt"
	if err := fillWithLowPriority(ctx, bed); err != nil {
		return nil, err
	}
	scheduler, err := bed.StartScheduler(asInstalled.Contender)
	if err != nil {
		return nil, err
	}
	defer scheduler.Stop()
	if err := bed.Namespace(ctx, namespace); err != nil {
		return nil, err
	}
	bound, err := bed.Watch(ctx, namespace)
	if err != nil {
		return nil, err
	}
	probes, err := startProbes(ctx, bed, scheduler)
	if err != nil {
		return nil, err
	}
	rest := func() error { return live.Pause(ctx, calm) }
	before, err := probes.phase(ctx, "before", rest)
	if err != nil {
		return nil, err
	}
	all := []phaseFigures{before}
	for g := range *gangs {
		during, err := probes.phase(ctx, fmt.Sprintf("gang %d", g), func() error {
			next := gang{namespace, fmt.Sprintf("g%d", g), *size, live.GPUs(8), "high"}
			if err := next.create(ctx, bed, true); err != nil {
				return err
			}
			return bound.Await(ctx, (g+1)**size, scheduler)
		})
		if err != nil {
			return all, err
		}
		during.AllBoundSeconds = during.Seconds
		left, err := bed.Client.CoreV1().Pods("full").List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return all, fmt.Errorf("counting the pods that are left: %w", err)
		}
		pods := len(left.Items) + int(ptr.Deref(left.RemainingItemCount, 0))
		if want := (*nodes - (g+1)**size) * 8; pods != want {
			return all, fmt.Errorf("%d pods of low priority are left, want %d", pods, want)
		}
		after, err := probes.phase(ctx, fmt.Sprintf("after gang %d", g), rest)
		if err != nil {
			return all, err
		}
		all = append(all, during, after)
	}
	_, _ = fmt.Fprintf(out, "%d nodes with %d pods of low priority; %d gangs of %d whole nodes, one after the other\n",
		*nodes, *nodes*8, *gangs, *size)
	return all, printPhases(out, all)
}

func fillWithLowPriority(ctx context.Context, bed *live.Bed) error {
	for name, value := range map[string]int32{"low": 10, "high": 100} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		if _, err := bed.Client.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating PriorityClass %s: %w", name, err)
		}
	}
	if err := bed.Namespace(ctx, "full"); err != nil {
		return err
	}
	rig.Progress("filling %d nodes with pods of low priority", *nodes)
	return bed.CreatePods(ctx, 0, *nodes*8, func(i int) *v1.Pod {
		pod := live.Pod("full", fmt.Sprintf("p-%d", i), profileName, live.GPUs(1))
		pod.Spec.PriorityClassName, pod.Spec.NodeName = "low", fmt.Sprintf("node-%d", i/8)
		// There is no kubelet that would end it.
		pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](0)
		return pod
	})
}
