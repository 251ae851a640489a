package gpuaware

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/gpu/mix"
)

func TestPodsThatBelongTogetherMakeNoMixKnown(t *testing.T) {
	t.Parallel()
	owned := func(uid string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: uid, UID: types.UID(uid),
			Controller: ptr.To(true)}}
	}
	for name, tc := range map[string]struct {
		owners func(i int) []metav1.OwnerReference
		labels map[string]string
		known  bool
	}{
		"pods on their own":      {func(int) []metav1.OwnerReference { return nil }, nil, true},
		"pods of one controller": {func(int) []metav1.OwnerReference { return owned("job") }, nil, false},
		"pods of a controller each": {func(i int) []metav1.OwnerReference { return owned(fmt.Sprint("job-", i)) }, nil,
			true},
		"pods of one gang, many owners": {func(i int) []metav1.OwnerReference { return owned(fmt.Sprint("job-", i)) },
			strs{"scheduling.x-k8s.io/pod-group": "train"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, alone(defaultArgs()), gpuNodeObject("n", 8, "Tesla-T4"))
			c := h.plugin.cluster
			for i := range 100 {
				pod := podObject(fmt.Sprint("p", i), strs{"nvidia.com/gpu": "1"}, nil)
				pod.Labels, pod.OwnerReferences = tc.labels, tc.owners(i)
				c.arrived(pod)
			}
			if got := c.learner.Learnt().Demand.Known(); got != tc.known {
				t.Errorf("known = %v, want %v", got, tc.known)
			}
		})
	}
}

func TestWhatEndsAtOnceHardlyCounts(t *testing.T) {
	t.Parallel()
	h := newHarness(t, alone(defaultArgs()), gpuNodeObject("n", 8, "Tesla-T4"))
	c := h.plugin.cluster
	scheduled := func(name, gpus string, at time.Time) *v1.Pod {
		pod := podObject(name, strs{"nvidia.com/gpu": gpus}, nil)
		pod.Spec.NodeName = "n"
		pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(at)}}
		return pod
	}
	now := time.Now()
	for i := range 200 {
		c.roll.see(podObject(fmt.Sprint("fails-", i), strs{"nvidia.com/gpu": "1"}, nil))
		fails := scheduled(fmt.Sprint("fails-", i), "1", now.Add(-time.Second))
		c.roll.see(fails)
		c.roll.leave(fails)
		if i%10 == 0 {
			c.roll.see(podObject(fmt.Sprint("train-", i), strs{"nvidia.com/gpu": "8"}, nil))
			c.roll.see(scheduled(fmt.Sprint("train-", i), "8", now.Add(-10*time.Hour)))
		}
	}
	one, eight := mix.Class{CPUMilli: 1000, Count: 1, Milli: 1000}, mix.Class{CPUMilli: 1000, Count: 8, Milli: 1000}
	mostly := mix.Given([]mix.Portion{{Class: eight, Fraction: 1}, {Class: one, Fraction: 0.2}})
	if far := c.learner.Learnt().Demand.Distribution().Distance(mostly); far > 0.2 {
		t.Errorf("the mix is %.2f away from one in which the pods that run are five of six; by arrivals it would be 0.74",
			far)
	}
}

// TestPodsThatNeverRanMoveNothing has a tenant create pods of eight GPUs that fit no node, and pods that name a node
// themselves. The estimate of stranded GPUs stays what it is.
func TestPodsThatNeverRanMoveNothing(t *testing.T) {
	t.Parallel()
	h := newHarness(t, alone(defaultArgs()), gpuNodeObject("t4", 6, "Tesla-T4"))
	c := h.plugin.cluster
	stranded := func() float64 {
		c.fleet.touch("t4")
		return c.fleet.byModel()["Tesla-T4"].strandedMilli
	}
	for i := range 300 {
		pod := podObject(fmt.Sprint("work-", i), strs{"nvidia.com/gpu": fmt.Sprint(1 + i%3)}, nil)
		c.roll.see(pod)
		pod.Spec.NodeName = "elsewhere"
		c.roll.see(pod)
	}
	before := stranded()
	for i := range 900 {
		impossible := podObject(fmt.Sprint("impossible-", i), strs{"nvidia.com/gpu": "8"}, nil)
		c.roll.see(impossible)
		c.roll.leave(impossible)
		c.roll.see(squatter(fmt.Sprint("squats-", i), "t4", nil, strs{"alibabacloud.com/gpu-count": "8"}))
	}
	if after := stranded(); after != before {
		t.Errorf("%.0f milli-GPU stranded after the attack, %.0f before", after, before)
	}
}
