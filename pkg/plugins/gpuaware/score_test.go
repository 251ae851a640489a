package gpuaware

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/test/harness/require"
)

func TestNormalizeScoreKeepsTheBestUnique(t *testing.T) {
	t.Parallel()
	p := &Plugin{}
	for _, tc := range []struct {
		name string
		raw  []int64
		want []int64
	}{
		{"one node", []int64{-5}, []int64{100}},
		{"equal nodes are equally good", []int64{-5, -5}, []int64{100, 100}},
		{"a hair's breadth is a point", []int64{-5, -6}, []int64{100, 99}},
		{"a quarter of a GPU halves the score", []int64{0, -250_000}, []int64{100, 50}},
		{"a hopeless node changes nothing for the others", []int64{0, -250_000, -9_000_000_000}, []int64{100, 50, 0}},
		{"gains are possible too", []int64{400_000, 0}, []int64{100, 38}},
		{"no nodes", nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var list fwk.NodeScoreList
			for i, s := range tc.raw {
				list = append(list, fwk.NodeScore{Name: fmt.Sprint(i), Score: s})
			}
			if status := p.NormalizeScore(t.Context(), nil, nil, list); !status.IsSuccess() {
				t.Fatal(status)
			}
			var got []int64
			for _, s := range list {
				got = append(got, s.Score)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("scores (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNormalizeScoreKeepsOrderAndRange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SliceOfN(rapid.Int64(), 1, 50).Draw(t, "raw")
		list := make(fwk.NodeScoreList, len(raw))
		for i, s := range raw {
			list[i].Score = s
		}
		//nolint:staticcheck // no context is looked at
		if status := (&Plugin{}).NormalizeScore(nil, nil, nil, list); !status.IsSuccess() {
			t.Fatal(status)
		}
		for i := range list {
			if list[i].Score < fwk.MinScore || list[i].Score > fwk.MaxScore {
				t.Fatalf("score %d out of range", list[i].Score)
			}
			for j := range list {
				if raw[i] > raw[j] && list[i].Score < list[j].Score {
					t.Fatalf("%d > %d became %d < %d", raw[i], raw[j], list[i].Score, list[j].Score)
				}
			}
		}
	})
}

// best is the node with the highest score.
func best(t *testing.T, h *harness, pod *v1.Pod) string {
	t.Helper()
	_, scores, err := h.evaluate(t, h, pod)
	require.NoError(t, err)
	top := scores[0]
	for _, s := range scores {
		if s.TotalScore > top.TotalScore {
			top = s
		}
	}
	for _, s := range scores {
		if s.Name != top.Name && s.TotalScore == top.TotalScore {
			t.Fatalf("%s and %s are equally good: %v", s.Name, top.Name, scores)
		}
	}
	return top.Name
}

func TestStrategyTurnsPackingRound(t *testing.T) {
	t.Parallel()
	running := podObject("running", strs{"nvidia.com/gpu": "4"}, nil)
	running.Spec.NodeName = "used"
	for strategy, want := range map[config.GPUStrategy]string{config.GPUStrategyPack: "used",
		config.GPUStrategySpread: "empty"} {
		h := newHarness(t, alone(defaultArgs(func(a *config.GPUAwareArgs) { a.Strategy = ptr.To(strategy) })),
			gpuNodeObject("used", 8, "Tesla-T4"), gpuNodeObject("empty", 8, "Tesla-T4"), running)
		if got := best(t, h, podObject("p", strs{"nvidia.com/gpu": "2"}, nil)); got != want {
			t.Errorf("%s places on %s, want %s", strategy, got, want)
		}
	}
}

func TestFreeEightGPUNodesAreKept(t *testing.T) {
	t.Parallel()
	h := newHarness(t, alone(defaultArgs()), gpuNodeObject("eight", 8, "Tesla-T4"), gpuNodeObject("four", 4, "Tesla-T4"))
	for i := range 200 {
		h.plugin.shared.runs(podObject(fmt.Sprint(i), strs{"nvidia.com/gpu": fmt.Sprint(1 + 7*(i%2))}, nil))
	}
	if got := best(t, h, podObject("p", strs{"nvidia.com/gpu": "1"}, nil)); got != "four" {
		t.Errorf("placed on %s, want four: half of the pods need eight GPUs", got)
	}
}

func TestSignatureTellsRequestsApart(t *testing.T) {
	t.Parallel()
	h := newHarness(t, alone(defaultArgs()), gpuNodeObject("n", 8, "Tesla-T4"))
	sign := func(pod *v1.Pod) any {
		fragments, status := h.plugin.SignPod(t.Context(), pod)
		if !status.IsSuccess() || len(fragments) != 1 {
			t.Fatalf("SignPod = %v, %v", fragments, status)
		}
		return fragments[0].Value
	}
	base := sign(podObject("p", strs{"nvidia.com/gpu": "1"}, nil))
	if diff := cmp.Diff(base, sign(podObject("q", strs{"nvidia.com/gpu": "1"}, nil))); diff != "" {
		t.Errorf("identical requests differ:\n%s", diff)
	}
	for _, other := range []*v1.Pod{
		podObject("p", strs{"nvidia.com/gpu": "2"}, nil), podObject("p", strs{"nvidia.com/gpu": "1", "cpu": "2"}, nil),
		podObject("p", strs{"nvidia.com/gpu": "1"}, strs{"berth.dev/gpu-models": "Tesla-T4"}),
		podObject("p", nil, strs{"gpu-fraction": "0.5"}),
	} {
		if cmp.Equal(base, sign(other)) {
			t.Errorf("a different request has the same signature: %+v", other)
		}
	}
	plain := sign(podObject("p", nil, nil))
	for _, other := range []*v1.Pod{
		podObject("p", strs{"cpu": "2"}, nil), podObject("p", nil, strs{"berth.dev/gpu-models": "Tesla-T4"}),
		podObject("p", nil, strs{"berth.dev/gpu-memory-min": "40Gi"}), podObject("p", strs{"nvidia.com/gpu": "1"}, nil),
	} {
		if cmp.Equal(plain, sign(other)) {
			t.Errorf("a pod without GPUs has the signature of %+v", other)
		}
	}
	for _, other := range []*v1.Pod{podObject("bad", nil, strs{"gpu-fraction": "x"}), claiming("claims")} {
		if _, status := h.plugin.SignPod(t.Context(), other); status.IsSuccess() {
			t.Errorf("the pod %s was signed, which cannot be read or has a claim of its own", other.Name)
		}
	}
}
