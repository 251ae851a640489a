package main

import (
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
func preemptForGangs(bed *live.Bed, out io.Writer) any {
	const namespace = "preempt"
	fillWithLowPriority(bed)
	scheduler := bed.StartScheduler(asInstalled.Contender)
	defer scheduler.Stop()
	bed.Namespace(namespace)
	bound := bed.Watch(namespace)
	probes := startProbes(bed, scheduler)
	rest := func() { bed.Pause(calm) }
	all := []phaseFigures{probes.phase("before", rest)}
	for g := range *gangs {
		during := probes.phase(fmt.Sprintf("gang %d", g), func() {
			gang{namespace, fmt.Sprintf("g%d", g), *size, live.GPUs(8), "high"}.create(bed, true)
			bound.Await((g+1)**size, scheduler)
		})
		during.AllBoundSeconds = during.Seconds
		left := rig.Must(bed.Client.CoreV1().Pods("full").List(bed.Context(), metav1.ListOptions{Limit: 1}))
		pods := len(left.Items) + int(ptr.Deref(left.RemainingItemCount, 0))
		if want := (*nodes - (g+1)**size) * 8; pods != want {
			rig.Fail(fmt.Errorf("%d pods of low priority are left, want %d", pods, want))
		}
		all = append(all, during, probes.phase(fmt.Sprintf("after gang %d", g), rest))
	}
	_, _ = fmt.Fprintf(out, "%d nodes with %d pods of low priority; %d gangs of %d whole nodes, one after the other\n",
		*nodes, *nodes*8, *gangs, *size)
	rig.Fail(rig.Table(out, all))
	return all
}

func fillWithLowPriority(bed *live.Bed) {
	for name, value := range map[string]int32{"low": 10, "high": 100} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		rig.Must(bed.Client.SchedulingV1().PriorityClasses().Create(bed.Context(), class, metav1.CreateOptions{}))
	}
	bed.Namespace("full")
	rig.Progress("filling %d nodes with pods of low priority", *nodes)
	bed.CreatePods(0, *nodes*8, func(i int) *v1.Pod {
		pod := live.Pod("full", fmt.Sprintf("p-%d", i), profileName, live.GPUs(1))
		pod.Spec.PriorityClassName, pod.Spec.NodeName = "low", fmt.Sprintf("node-%d", i/8)
		// There is no kubelet that would end it.
		pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](0)
		return pod
	})
}
