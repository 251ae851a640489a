package gpuaware

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/test/harness/require"
)

// sumOf adds the amounts up.
func sumOf(of []process.Term) float64 {
	sum := 0.0
	for _, t := range of {
		sum += t.Amount
	}
	return sum
}

func TestEveryTermOfTheWasteIsNamedOnce(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, term := range termsOf(&gpu.Waste{}, false) {
		if term.Name == "" || term.For == "" || names[term.Name] {
			t.Errorf("the term %+v has no name of its own, or does not say what is charged", term)
		}
		names[term.Name] = true
	}
	for i := range reflect.TypeFor[gpu.Waste]().NumField() {
		var w gpu.Waste
		reflect.ValueOf(&w).Elem().Field(i).SetFloat(7)
		if got := sumOf(termsOf(&w, false)); got != w.Sum() || got != 7 {
			t.Errorf("with %+v the terms add up to %v and the sum is %v, want 7", w, got, w.Sum())
		}
	}
}

func TestTermsAddUpToTheScore(t *testing.T) {
	t.Parallel()
	linked := gpuNodeObject("linked", 8, "NVIDIA-A100-SXM4-80GB", "gpu-interconnect", "nvlink")
	objects := []runtime.Object{
		linked, gpuNodeObject("a100", 8, "NVIDIA-A100-SXM4-80GB"), gpuNodeObject("used", 8, "Tesla-T4"),
		gpuNodeObject("empty", 8, "Tesla-T4"), gpuNodeObject("shared", 4, "Tesla-T4", "berth.dev/gpu-mode", "shared"),
	}
	used := podObject("running", strs{"nvidia.com/gpu": "1"}, nil)
	used.Spec.NodeName = "used"
	objects = append(objects, used)
	// Enough pods for a known mix: some need eight GPUs, and all a T4.
	for i := range 20 {
		gpus := []string{"1", "8"}[i%2]
		p := podObject(fmt.Sprint("running-", i), strs{"nvidia.com/gpu": gpus}, strs{"berth.dev/gpu-models": "Tesla-T4"})
		p.Spec.NodeName = fmt.Sprint("full-", i)
		objects = append(objects, p, gpuNodeObject(p.Spec.NodeName, 1+7*(i%2), "Tesla-T4"))
	}
	h := newHarness(t, alone(defaultArgs()), objects...)
	seen := map[string]bool{}
	for _, pod := range []*v1.Pod{
		podObject("p", strs{"nvidia.com/gpu": "1"}, nil),
		podObject("q", strs{"nvidia.com/gpu": "3"}, strs{"berth.dev/gpu-interconnect": "preferred"}),
		podObject("r", nil, strs{"gpu-fraction": "0.3"}), podObject("s", strs{"cpu": "30"}, nil),
	} {
		state, scores, err := h.evaluate(t, h, pod)
		require.NoError(t, err)
		for _, s := range scores {
			info, err := h.Snapshot.NodeInfos().Get(s.Name)
			require.NoError(t, err)
			cost, err := h.plugin.Terms(context.Background(), state, pod, info)
			require.NoError(t, err)
			raw := s.RawScores[0].Score
			if got := -int64(math.Round(sumOf(cost.Terms) * scoreUnit)); got != raw || cost.Unit != "milli-GPU" {
				t.Errorf("pod %s on %s: the terms add up to a score of %d in %s, want %d: %+v",
					pod.Name, s.Name, got, cost.Unit, raw, cost.Terms)
			}
			for _, term := range cost.Terms {
				seen[term.Name] = seen[term.Name] || term.Amount != 0
			}
		}
	}
	for _, name := range []string{"best fit", "opening", "hosts", "links", "capability"} {
		if !seen[name] {
			t.Errorf("no placement of this test has the term %q", name)
		}
	}
}
