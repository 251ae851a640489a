package main

import (
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
	"berth.dev/berth/hack/bench/rig"
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
		pod.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: nodesWith("example.com/n", strconv.Itoa(i))}}
	},
	"spread": func(pod *v1.Pod, i int) {
		pod.Labels["example.com/n"] = strconv.Itoa(i)
		pod.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 5000,
			TopologyKey:       "kubernetes.io/hostname",
			WhenUnsatisfiable: v1.DoNotSchedule,
			LabelSelector:     &metav1.LabelSelector{MatchLabels: map[string]string{"example.com/n": strconv.Itoa(i)}}}}
	},
}

// nodesWith are the nodes on which there is a pod with a label.
func nodesWith(key, value string) []v1.PodAffinityTerm {
	return []v1.PodAffinityTerm{{TopologyKey: "kubernetes.io/hostname",
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}}}
}

// delayOthers measures for how long gangs of distinct members keep pods of another namespace waiting.
func delayOthers(bed *live.Bed, out io.Writer) any {
	vary, known := kinds[*distinct]
	if !known {
		rig.Fail(fmt.Errorf("-distinct: %q is unknown; want one of %s", *distinct,
			strings.Join(slices.Sorted(maps.Keys(kinds)), ", ")))
	}
	scheduler, _ := bed.Ready(asInstalled.Contender, warmPod("warm"))
	defer scheduler.Stop()
	bed.Namespace(attacker)
	prepare(bed)
	bound := bed.Watch(attacker)
	probes := startProbes(bed, scheduler)
	calm := func() { bed.Pause(quiet) }
	all := []phaseFigures{
		probes.phase("before", calm),
		// All members but the last of each gang exist before it can be planned.
		probes.phase("while members are created", func() {
			live.CreateAll(*gangs, func(i int) {
				createPodGroup(bed, attacker, fmt.Sprintf("g%d", i), *size)
				bed.CreatePods(0, *size-1, func(member int) *v1.Pod { return distinctPod(i, member, vary) })
			})
		}),
		probes.phase("before the last members", calm),
	}
	var allBound time.Duration
	complete := probes.phase("once all gangs are complete", func() {
		for i := range *gangs {
			bed.CreatePod(distinctPod(i, *size-1, vary))
		}
		if *never {
			bed.Pause(*rest)
			return
		}
		began := time.Now()
		bound.Await(*gangs**size, scheduler)
		allBound = time.Since(began)
	})
	complete.AllBoundSeconds = allBound.Seconds()
	all = append(all, complete)
	if *edits > 0 {
		made := 0
		edited := probes.phase(fmt.Sprintf("with %d edits a second", *edits), func() { made = editMembers(bed) })
		edited.EditsPerSecond = float64(made) / edited.Seconds
		all = append(all, edited)
	}
	_, _ = fmt.Fprintf(out, "%d nodes, %d gangs of %d members that differ by %s, never to start: %t\n",
		*nodes, *gangs, *size, *distinct, *never)
	rig.Fail(rig.Table(out, all))
	return all
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
		pod.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: nodesWith("example.com/absent", "here")}}
	}
	return pod
}

// editMembers changes annotations of members of the first gang, one after the other.
func editMembers(bed *live.Bed) (made int) {
	tick := time.NewTicker(time.Second / time.Duration(*edits))
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < *rest; made++ {
		<-tick.C
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/edit":"%d"}}}`, made)
		_, err := bed.Client.CoreV1().Pods(attacker).Patch(bed.Context(), fmt.Sprintf("g0-%d", made%*size),
			apitypes.MergePatchType, patch, metav1.PatchOptions{})
		rig.Check(err, "editing a member")
	}
	return made
}
