package plugins_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"berth.dev/berth/test/harness/box"
)

const (
	// impossiblePods want nodes that there are none: each all CPUs of one for a single GPU.
	impossiblePods = 300
	// arrivals are the pods that run.
	arrivals = 90
	// fewUnused is a quarter of the GPUs. It is far above what the work alone leaves unused, which differs from run to
	// run, as the lives of the pods are not the same to the second, and far below the 40 that would be expected if
	// impossible pods counted.
	fewUnused = 17
)

// mixedFleet has nodes of a model that no other test has.
const mixedFleet = `shapes:
- {name: mix, count: 16, labels: {nvidia.com/gpu.product: NVIDIA-L4, nvidia.com/gpu.count: "4"}, allocatable: {cpu: "32", memory: 256Gi, nvidia.com/gpu: "4"}}
`

// testMix runs the same small pods with and without pods that can never run, each time by a scheduler that knows
// nothing yet. What it expects to strand on the same empty nodes says for which work it places pods. Where pods go says
// less: the nodes fill up to the same few GPUs under either mix.
func testMix(t *testing.T, b *box.Box) {
	b = b.Part(t, "mix", mixedFleet)
	mallory := b.Tenant(t, "mallory", nil)
	unusedAfter := func(name string, impossible int) float64 {
		b.KillScheduler(t)
		for i := range impossible {
			pod := gpuPod(fmt.Sprintf("impossible-%d", i), strs{"cpu": "32", "nvidia.com/gpu": "1"}, nil)
			pod.Spec.NodeSelector["attacked"] = "never"
			mallory.Create(t, pod)
		}
		mallory.AwaitPods(t, "pods to be decided on", func(pods []*v1.Pod) (bool, error) {
			return decided(pods) == impossible, nil
		})
		// Each comes when the one before has been decided on.
		random, n := rand.New(rand.NewPCG(7, 7)), 0
		b.AwaitPods(t, "all arrivals to be decided on", func(pods []*v1.Pod) (bool, error) {
			if decided(pods) < n || n == arrivals {
				return decided(pods) == arrivals, nil
			}
			requests := strs{"cpu": "4"}
			switch random.IntN(10) {
			case 4, 5, 6, 7, 8:
				requests = strs{"cpu": "6", "nvidia.com/gpu": "1"}
			case 9:
				requests = strs{"cpu": "8", "nvidia.com/gpu": "2"}
			}
			b.Create(t, gpuPod(fmt.Sprintf("%s-%d", name, n), requests, nil))
			n++
			return false, nil
		})
		deleteAll(t, b)
		deleteAll(t, mallory)
		// Each node is counted by the mix of the moment at which its last pod goes.
		unused := 0.0
		b.Await(t, "the scheduler to have heard that the nodes are empty", func(ctx context.Context) (bool, error) {
			page, failed := b.SchedulerPage(ctx, "/metrics", nil)
			allocated, unknown := gauge(page, "berth_gpu_allocated")
			var err error
			unused, err = gauge(page, "berth_gpu_expected_unused")
			// It may be being started again.
			return errors.Join(failed, unknown, err) == nil && allocated == 0, nil
		})
		return unused
	}
	clean := unusedAfter("clean", 0)
	attacked := unusedAfter("attacked", impossiblePods)
	outcome := fmt.Sprintf("%.1f GPUs are expected to stay unused, with %d impossible pods %.1f", clean, impossiblePods,
		attacked)
	t.Log(outcome)
	if max(clean, attacked) > fewUnused {
		t.Errorf("%s, want at most %d", outcome, fewUnused)
	}
}

// gauge is what the scheduler measures of the model.
func gauge(metrics []byte, name string) (float64, error) {
	found := regexp.MustCompile(`(?m)^` + name + `\{model="NVIDIA-L4"\} (\S+)$`).FindSubmatch(metrics)
	if found == nil {
		return 0, fmt.Errorf("the scheduler has no metric %s of the model NVIDIA-L4", name)
	}
	return strconv.ParseFloat(string(found[1]), 64)
}

// deleteAll deletes the pods of a namespace at once, and waits until they are gone.
func deleteAll(t *testing.T, b *box.Box) {
	t.Helper()
	at := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	if err := b.Client.CoreV1().Pods(b.Namespace).DeleteCollection(t.Context(), at, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	b.AwaitPods(t, "the pods of "+b.Namespace+" to be gone", func(pods []*v1.Pod) (bool, error) {
		return len(pods) == 0,
			nil
	})
}
