package gpuaware

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/gpu/mix"
	"berth.dev/berth/test/harness/await"
	"berth.dev/berth/test/harness/objects"
)

// countedAs is what a pod is counted as.
type countedAs struct {
	class                mix.Class
	mixed, placed, turns bool
}

// enrolledNow copies what pods are counted as.
func (r *roll) enrolledNow() map[types.UID]countedAs {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[types.UID]countedAs{}
	for uid, e := range r.pods {
		all[uid] = countedAs{e.class.Class, e.mixed, e.placed, e.turns}
	}
	return all
}

func (r *roll) waitingNow() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting)
}

// A scheduler that starts hears of pods before it hears of their claims and of the devices.
func TestPodsWithClaimsAreCountedAfterARestart(t *testing.T) {
	t.Parallel()
	known := []runtime.Object{plainClass("whole"), bareNode("n"), gpuSlice("n", 8, "Tesla T4", "16Gi")}
	want := map[types.UID]countedAs{}
	for i := range 4 {
		name := fmt.Sprint("p", i)
		pod := claiming(name, name)
		if i < 3 {
			pod.Spec.NodeName = "n"
			known = append(known, claimOf(name, "n", fmt.Sprint("gpu-", 2*i), fmt.Sprint("gpu-", 2*i+1)))
		} else {
			known = append(known, objects.ClaimOf(name, objects.Request("a", "whole", 2)))
		}
		known = append(known, pod)
		want[pod.UID] = countedAs{class: mix.Class{CPUMilli: 1000, Count: 2, Milli: 1000}, mixed: true, placed: i < 3,
			turns: i < 3}
	}
	h := newHarness(t, gpuOnly(alone(defaultArgs())), known...)
	roll := h.plugin.cluster.roll
	var got map[types.UID]countedAs
	await.Until(t, "all pods to be enrolled", func() bool { got = roll.enrolledNow(); return len(got) == len(want) })
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(countedAs{})); diff != "" {
		t.Errorf("counted as (-want +got):\n%s", diff)
	}
	for i := range 4 {
		if err := h.client.CoreV1().Pods("default").Delete(h.ctx, fmt.Sprint("p", i), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	await.Until(t, "the pods to leave", func() bool { return len(roll.enrolledNow()) == 0 })
	roll.mu.Lock()
	defer roll.mu.Unlock()
	if len(roll.classes) > 0 {
		t.Errorf("%d classes are kept of no pod", len(roll.classes))
	}
}

// One GPU pod is there to stay. Three that were never counted go: that is no turnover.
func TestPodsThatWereNeverCountedDoNotCountAsDepartures(t *testing.T) {
	t.Parallel()
	stays := podObject("stays", strs{"nvidia.com/gpu": "1"}, nil)
	stays.Spec.NodeName = "plugin"
	known := []runtime.Object{plainClass("whole"), gpuNodeObject("plugin", 4, "Tesla-T4"), bareNode("n"),
		gpuSlice("n", 8, "Tesla T4", "16Gi"), stays}
	for i := range 3 {
		pod := claiming(fmt.Sprint("lost-", i), "of-which-nothing-is-known")
		pod.Spec.NodeName = "n"
		known = append(known, pod)
	}
	h := newHarness(t, gpuOnly(alone(defaultArgs())), known...)
	awaitDevices(t, h, 1)
	roll, totals := h.plugin.cluster.roll, &h.plugin.cluster.views.totals
	if _, _, err := h.evaluate(t, h, podObject("looks", strs{"nvidia.com/gpu": "1"}, nil)); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the pods to arrive", func() bool { return len(roll.enrolledNow()) == 1 && roll.waitingNow() == 3 })
	for i := range 3 {
		if err := h.client.CoreV1().Pods("default").Delete(h.ctx, fmt.Sprint("lost-", i),
			metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	await.Until(t, "the pods to be counted", func() bool { return roll.waitingNow() == 0 })
	totals.mu.Lock()
	defer totals.mu.Unlock()
	if filling := totals.supply.Filling(); filling != 1 {
		t.Errorf("filling is %g after pods went that were never counted, want 1", filling)
	}
}

// awaitDevices waits until a number of nodes have devices that can be claimed.
func awaitDevices(t *testing.T, h *harness, nodes int) {
	t.Helper()
	await.Until(t, "the devices of the nodes", func() bool {
		n := 0
		for range h.plugin.cluster.claims.Latest().Names() {
			n++
		}
		return n == nodes
	})
}

// A share is measured by what the allocator would give while it waits, and by what it got afterwards, which may be
// more.
func TestPodsAreTimedAsTheClassThatTheyArrivedAs(t *testing.T) {
	t.Parallel()
	claim, allocated := objects.ClaimOf("c", objects.Request("a", "whole", 2)), claimOf("c", "n", "gpu-0", "gpu-1",
		"gpu-2")
	claim.ResourceVersion, allocated.ResourceVersion = "1", "2"
	h := newHarness(t, gpuOnly(alone(defaultArgs())), plainClass("whole"), bareNode("n"),
		gpuSlice("n", 8, "Tesla T4", "16Gi"), claim)
	awaitClaim(t, h, 1)
	roll := h.plugin.cluster.roll
	pod := h.add(t, claiming("p", "c"))
	arrived := countedAs{class: mix.Class{CPUMilli: 1000, Count: 2, Milli: 1000}, mixed: true}
	await.Until(t, "the pod to be timed as it arrived", func() bool { return roll.enrolledNow()["p"] == arrived })
	api := h.client.ResourceV1().ResourceClaims("default")
	if _, err := api.Update(h.ctx, allocated, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the claim to be read", func() bool {
		class, _, known := h.plugin.cluster.learner.ClassOf(h.ctx, pod)
		return known && class.Count == 3
	})
	bound := pod.DeepCopy()
	bound.Spec.NodeName = "n"
	roll.see(bound)
	arrived.placed, arrived.turns = true, true
	if got := roll.enrolledNow()["p"]; got != arrived {
		t.Errorf("bound as %+v, want %+v", got, arrived)
	}
	roll.leave(bound)
}

func TestPodsThatCountForNothingAreNotKept(t *testing.T) {
	t.Parallel()
	tainted := gpuNodeObject("n", 8, "Tesla-T4")
	tainted.Spec.Taints = []v1.Taint{{Key: "nvidia.com/gpu", Effect: v1.TaintEffectNoSchedule}}
	h := newHarness(t, alone(defaultArgs()), tainted)
	roll := h.plugin.cluster.roll
	letIn := podObject("let-in", nil, nil)
	letIn.Spec.Tolerations = []v1.Toleration{{Key: "nvidia.com/gpu", Operator: v1.TolerationOpExists}}
	for _, tc := range []struct {
		name string
		pod  *v1.Pod
		kept bool
	}{
		{"without GPUs, and not let in", podObject("plain", nil, nil), false},
		{"without GPUs, and let in", letIn, true},
		{"with a GPU", podObject("gpu", strs{"nvidia.com/gpu": "1"}, nil), true},
		{"with a share by annotation", podObject("share", nil, strs{"gpu-fraction": "0.5"}), true},
	} {
		tc.pod.Spec.NodeName = "n"
		roll.see(tc.pod)
		if _, kept := roll.enrolledNow()[tc.pod.UID]; kept != tc.kept {
			t.Errorf("a pod %s is kept: %t", tc.name, kept)
		}
	}
}
