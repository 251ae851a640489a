package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apitypes "k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/hack/bench/rig"
)

const (
	// attacker is the namespace of the gangs that make others wait.
	attacker = "attacker"
	// quiet is how long the probes go on before the gangs come.
	quiet = 5 * time.Second
)

// kinds are the ways in which members of a gang can differ from each other.
var kinds = map[string]func(pod *v1.Pod, i int){
	"same":       func(*v1.Pod, int) {},
	"annotation": func(pod *v1.Pod, i int) { pod.Annotations = map[string]string{"example.com/n": strconv.Itoa(i)} },
	"label":      func(pod *v1.Pod, i int) { pod.Labels["example.com/n"] = strconv.Itoa(i) },
	"request":    func(*v1.Pod, int) {},
	"claim":      needsClaim,
	"volume":     needsVolume,
	"toleration": func(pod *v1.Pod, i int) {
		pod.Spec.Tolerations = []v1.Toleration{{Key: "example.com/" + strconv.Itoa(i), Operator: v1.TolerationOpExists}}
	},
	"affinity": func(pod *v1.Pod, i int) {
		pod.Labels["example.com/n"] = strconv.Itoa(i)
		pod.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
			TopologyKey:   "kubernetes.io/hostname",
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"example.com/n": strconv.Itoa(i)}}}}}}
	},
	"spread": func(pod *v1.Pod, i int) {
		pod.Labels["example.com/n"] = strconv.Itoa(i)
		pod.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 5000,
			TopologyKey:       "kubernetes.io/hostname",
			WhenUnsatisfiable: v1.DoNotSchedule,
			LabelSelector:     &metav1.LabelSelector{MatchLabels: map[string]string{"example.com/n": strconv.Itoa(i)}}}}
	},
}

// delayOthers measures for how long gangs of distinct members keep pods of another namespace waiting.
func delayOthers(ctx context.Context, bed *rig.Rig, out io.Writer) (any, error) {
	of := run{"", coscheduling, noDefaults, true, rig.InstalledGates}
	vary, known := kinds[*distinct]
	if !known {
		return nil, fmt.Errorf("unknown kind of difference %q", *distinct)
	}
	scheduler, err := ready(ctx, bed, &of, "warm")
	if err != nil {
		return nil, err
	}
	defer scheduler.Stop()
	if err := bed.Namespace(ctx, attacker); err != nil {
		return nil, err
	}
	if err := prepare(ctx, bed); err != nil {
		return nil, err
	}
	probes, err := startProbes(ctx, bed)
	if err != nil {
		return nil, err
	}
	_, _ = fmt.Fprintf(out, "%d nodes, %d gangs of %d members that differ by %s, never to start: %t\n"+waitHeader,
		*nodes, *gangs, *size, *distinct, *never, "waits of other pods, ms", "p50", "p99", "most", "pods")
	var all []waitFigures
	phase := func(name string, do func() error) error {
		before, err := cycleCounts(ctx, scheduler)
		if err != nil {
			return err
		}
		planned, took, err := plans(ctx, scheduler)
		if err != nil {
			return err
		}
		cpu, err := scheduler.CPU()
		if err != nil {
			return err
		}
		began := time.Now()
		w := probes.during(do)
		lasted := time.Since(began)
		if w.err != nil {
			return w.err
		}
		after, err := cycleCounts(ctx, scheduler)
		if err != nil {
			return err
		}
		plannedAfter, tookAfter, err := plans(ctx, scheduler)
		if err != nil {
			return err
		}
		cpuAfter, err := scheduler.CPU()
		if err != nil {
			return err
		}
		f := w.figures(name)
		f.Seconds, f.SchedulerCPUSeconds, f.LongestCycleMillis = lasted.Seconds(), (cpuAfter - cpu).Seconds(),
			1000*longest(before, after)
		f.Plans, f.PlanSeconds = plannedAfter-planned, tookAfter-took
		f.print(out)
		_, _ = fmt.Fprintf(out,
			"  %.1f s; the scheduler used %.1f s of CPU; longest scheduling cycle at most %.0f ms; %d plans, of %.2f "+
				"s in all\n",
			f.Seconds, f.SchedulerCPUSeconds, f.LongestCycleMillis, f.Plans, f.PlanSeconds)
		all = append(all, f)
		return nil
	}
	if err := phase("before", func() error { return pause(ctx, quiet) }); err != nil {
		return nil, err
	}
	// All members but the last of each gang exist before it can be planned.
	if err := phase("while members are created", func() error {
		return rig.CreateAll(*gangs, func(i int) error { return createDistinct(ctx, bed, i, vary) })
	}); err != nil {
		return nil, err
	}
	if err := pause(ctx, quiet); err != nil {
		return nil, err
	}
	var started time.Duration
	if err := phase("once all gangs are complete", func() error {
		for i := range *gangs {
			if err := bed.CreatePod(ctx, distinctPod(i, *size-1, vary)); err != nil {
				return err
			}
		}
		began := time.Now()
		if !*never {
			if err := bed.AwaitBound(ctx, attacker, *gangs**size); err != nil {
				return err
			}
			started = time.Since(began)
			return nil
		}
		return pause(ctx, *rest)
	}); err != nil {
		return nil, err
	}
	if started > 0 {
		all[len(all)-1].AllBoundSeconds = started.Seconds()
		_, _ = fmt.Fprintf(out, "  all members bound after %.1f s\n", started.Seconds())
	}
	if *edits == 0 {
		return all, nil
	}
	made := 0
	if err := phase(fmt.Sprintf("with %d edits a second", *edits),
		func() error { return editMembers(ctx, bed, &made) }); err != nil {
		return nil, err
	}
	all[len(all)-1].EditsPerSecond = float64(made) / rest.Seconds()
	_, _ = fmt.Fprintf(out, "  %.0f edits a second\n", all[len(all)-1].EditsPerSecond)
	return all, nil
}

// createDistinct creates a gang without its last member.
func createDistinct(ctx context.Context, bed *rig.Rig, i int, vary func(*v1.Pod, int)) error {
	group := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "scheduling.x-k8s.io/v1alpha1",
		"kind":     "PodGroup",
		"metadata": map[string]any{"name": fmt.Sprintf("g%d", i)}, "spec": map[string]any{"minMember": int64(*size)}}}
	if _, err := bed.Dynamic.Resource(podGroups).Namespace(attacker).Create(ctx, group,
		metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating PodGroup %d: %w", i, err)
	}
	return rig.CreateAll(*size-1, func(member int) error { return bed.CreatePod(ctx, distinctPod(i, member, vary)) })
}

// distinctPod is one member. Of a gang that can never start the last has an affinity to a pod that does not exist,
// which the account of the cluster does not know.
func distinctPod(gang, member int, vary func(*v1.Pod, int)) *v1.Pod {
	requests := v1.ResourceList{v1.ResourceCPU: resource.MustParse("10m")}
	if *distinct == "request" {
		requests[v1.ResourceMemory] = *resource.NewQuantity(int64(1<<20+gang**size+member), resource.BinarySI)
	}
	pod := rig.Pod(attacker, fmt.Sprintf("g%d-%d", gang, member), profileName, requests)
	pod.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": fmt.Sprintf("g%d", gang)}
	vary(pod, gang**size+member)
	if *never && member == *size-1 {
		absent := v1.PodAffinityTerm{TopologyKey: "kubernetes.io/hostname",
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"example.com/absent": "here"}}}
		pod.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{absent}}}
	}
	return pod
}

// editMembers changes annotations of members of the first gang, one after the other.
func editMembers(ctx context.Context, bed *rig.Rig, made *int) error {
	tick := time.NewTicker(time.Second / time.Duration(*edits))
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < *rest; *made++ {
		<-tick.C
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/edit":"%d"}}}`, *made)
		name := fmt.Sprintf("g0-%d", *made%*size)
		if _, err := bed.Client.CoreV1().Pods(attacker).Patch(ctx, name, apitypes.MergePatchType, patch,
			metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("editing a member: %w", err)
		}
	}
	return nil
}

// plans returns how many gangs were planned, and how long that took.
func plans(ctx context.Context, scheduler *rig.Scheduler) (count uint64, seconds float64, err error) {
	families, err := scheduler.Metrics(ctx)
	if err != nil {
		return 0, 0, err
	}
	for _, m := range families["berth_gang_plan_duration_seconds"].GetMetric() {
		count += m.GetHistogram().GetSampleCount()
		seconds += m.GetHistogram().GetSampleSum()
	}
	return count, seconds, nil
}
