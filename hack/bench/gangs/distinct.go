package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/hack/bench/live"
	"berth.dev/berth/pkg/gangview"
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
func delayOthers(ctx context.Context, bed *live.Bed, out io.Writer) (any, error) {
	vary, known := kinds[*distinct]
	if !known {
		return nil, fmt.Errorf("-distinct: %q is unknown; want one of %s", *distinct,
			strings.Join(slices.Sorted(maps.Keys(kinds)), ", "))
	}
	scheduler, _, err := bed.Ready(ctx, asInstalled.Contender, "warm", warmPod("warm"))
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
	bound, err := bed.Watch(ctx, attacker)
	if err != nil {
		return nil, err
	}
	probes, err := startProbes(ctx, bed, scheduler)
	if err != nil {
		return nil, err
	}
	calm := func() error { return live.Pause(ctx, quiet) }
	var allBound time.Duration
	made := 0
	phases := []struct {
		name string
		do   func() error
	}{
		{"before", calm},
		// All members but the last of each gang exist before it can be planned.
		{"while members are created", func() error {
			return live.CreateAll(*gangs, func(i int) error { return createDistinct(ctx, bed, i, vary) })
		}},
		{"before the last members", calm},
		{"once all gangs are complete", func() error {
			for i := range *gangs {
				if err := bed.CreatePod(ctx, distinctPod(i, *size-1, vary)); err != nil {
					return err
				}
			}
			if *never {
				return live.Pause(ctx, *rest)
			}
			began := time.Now()
			defer func() { allBound = time.Since(began) }()
			return bound.Await(ctx, *gangs**size, scheduler)
		}},
		{fmt.Sprintf("with %d edits a second", *edits), func() error { return editMembers(ctx, bed, &made) }},
	}
	if *edits == 0 {
		phases = phases[:len(phases)-1]
	}
	var all []phaseFigures
	for i, phase := range phases {
		figures, err := probes.phase(ctx, phase.name, phase.do)
		if err != nil {
			return all, err
		}
		switch i {
		case 3:
			figures.AllBoundSeconds = allBound.Seconds()
		case 4:
			figures.EditsPerSecond = float64(made) / figures.Seconds
		}
		all = append(all, figures)
	}
	_, _ = fmt.Fprintf(out, "%d nodes, %d gangs of %d members that differ by %s, never to start: %t\n",
		*nodes, *gangs, *size, *distinct, *never)
	return all, printPhases(out, all)
}

// createDistinct creates a gang without its last member.
func createDistinct(ctx context.Context, bed *live.Bed, i int, vary func(*v1.Pod, int)) error {
	if err := createPodGroup(ctx, bed, attacker, fmt.Sprintf("g%d", i), *size); err != nil {
		return err
	}
	return bed.CreatePods(ctx, 0, *size-1, func(member int) *v1.Pod { return distinctPod(i, member, vary) })
}

// distinctPod is one member. Of a gang that can never start the last has an affinity to a pod that does not exist,
// which the account of the cluster does not know.
func distinctPod(gang, member int, vary func(*v1.Pod, int)) *v1.Pod {
	requests := v1.ResourceList{v1.ResourceCPU: resource.MustParse("10m")}
	if *distinct == "request" {
		requests[v1.ResourceMemory] = *resource.NewQuantity(int64(1<<20+gang**size+member), resource.BinarySI)
	}
	pod := live.Pod(attacker, fmt.Sprintf("g%d-%d", gang, member), profileName, requests)
	gangview.Join(pod, fmt.Sprintf("g%d", gang))
	vary(pod, gang**size+member)
	if *never && member == *size-1 {
		absent := v1.PodAffinityTerm{TopologyKey: "kubernetes.io/hostname",
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"example.com/absent": "here"}}}
		pod.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{absent}}}
	}
	return pod
}

// editMembers changes annotations of members of the first gang, one after the other.
func editMembers(ctx context.Context, bed *live.Bed, made *int) error {
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
