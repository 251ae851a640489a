package gpuaware

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/signals"
	"berth.dev/berth/test/harness/await"
	"berth.dev/berth/test/harness/require"
)

func TestAProfileMayAskForGPUMemory(t *testing.T) {
	t.Parallel()
	h := newHarness(t, alone(defaultArgs(func(a *config.GPUAwareArgs) { a.MinMemoryMiB = ptr.To(int32(24 << 10)) })),
		gpuNodeObject("t4", 4, "Tesla-T4"), gpuNodeObject("a10", 4, "NVIDIA-A10"),
		gpuNodeObject("a100", 4, "NVIDIA-A100-SXM4-80GB"))
	for name, tc := range map[string]struct{ annotation, want string }{
		"the profile's":      {"", "a10"},
		"more of its own":    {"40Gi", "a100"},
		"no less of its own": {"8Gi", "a10"},
	} {
		annotations := strs{}
		if tc.annotation != "" {
			annotations["berth.dev/gpu-memory-min"] = tc.annotation
		}
		if got := best(t, h, podObject("p", strs{"nvidia.com/gpu": "1"}, annotations)); got != tc.want {
			t.Errorf("%s: placed on %s, want %s", name, got, tc.want)
		}
	}
}

func TestCPUIntensivePodsKeepOffSmallNodes(t *testing.T) {
	t.Parallel()
	small := &v1.Node{}
	small.Name, small.UID = "small", "small"
	small.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1"),
		v1.ResourceMemory: resource.MustParse("8Gi"), v1.ResourcePods: resource.MustParse("110")}
	h := newHarness(t,
		alone(defaultArgs(func(a *config.GPUAwareArgs) { a.CPUIntensiveMinMilliCPU = ptr.To(int64(2000)) })), small)
	p := podObject("p", nil, nil)
	p.Labels = strs{"workload-type": "CPU-intensive"}
	if _, _, err := h.evaluate(t, h, p); err == nil ||
		!strings.Contains(err.Error(), "too little CPU for CPU-intensive pods (need 2000 milli-cores)") {
		t.Errorf("error = %v, want the CPU that is missing", err)
	}
	if _, _, err := h.evaluate(t, h, podObject("other", nil, nil)); err != nil {
		t.Errorf("a pod without the label: %v", err)
	}
}

func TestWholeGPUsKeepOffNodesThatAreBusyBeyondTheirPods(t *testing.T) {
	t.Parallel()
	var samples []string
	for node, busy := range map[string]int{"hot": 90, "cold": 0, "used": 50} {
		for i := range 2 {
			samples = append(samples, sample("util", node, i, busy))
		}
		samples = append(samples, sample("time", node, 0, time.Now().Unix()))
	}
	server := prometheusStub(t, samples, nil)
	running := podObject("running", strs{"nvidia.com/gpu": "1"}, nil)
	running.Spec.NodeName = "used"
	h := newHarness(t, alone(defaultArgs(measuredBy(server))), gpuNodeObject("hot", 2, "Tesla-T4"),
		gpuNodeObject("cold", 2, "Tesla-T4"),
		gpuNodeObject("used", 2, "Tesla-T4"), running)
	awaitSignals(t, h, func(s *signals.GPUSnapshot) bool { _, ok := s.Use("cold", time.Now()); return ok })
	p := podObject("p", strs{"nvidia.com/gpu": "1"}, nil)
	state, scores, err := h.evaluate(t, h, p)
	require.NoError(t, err)
	score := map[string]int64{}
	for _, s := range scores {
		score[s.Name] = s.TotalScore
	}
	if score["used"] != 100 || score["cold"] <= score["hot"] {
		t.Errorf("scores %v (%v), want the node in use first and the hot one last", score, state)
	}
}

func TestSharesKeepOffFullFramebuffers(t *testing.T) {
	t.Parallel()
	var samples []string
	for node, used := range map[string]int{"a": 15000, "b": 100, "c": 8000} {
		samples = append(samples, sample("used", node, 0, used), sample("free", node, 0, 16000-used),
			sample("util", node, 0, 10), sample("time", node, 0, time.Now().Unix()))
	}
	server := prometheusStub(t, samples, nil)
	h := newHarness(t, alone(defaultArgs(measuredBy(server))), sharedNode("a", 1), sharedNode("b", 1), sharedNode("c", 1))
	awaitSignals(t, h, func(s *signals.GPUSnapshot) bool { _, ok := s.Use("b", time.Now()); return ok })
	if got := best(t, h, podObject("p", nil, strs{"gpu-fraction": "0.2"})); got != "b" {
		t.Errorf("share placed on %s, want the GPU whose memory is free", got)
	}
}

func TestOnlyNVIDIANodesAreMeasured(t *testing.T) {
	t.Parallel()
	amd := gpuNodeObject("amd", 8, "")
	delete(amd.Status.Allocatable, "nvidia.com/gpu")
	delete(amd.Labels, "nvidia.com/gpu.count")
	amd.Status.Allocatable["amd.com/gpu"] = resource.MustParse("8")
	sliced := gpuNodeObject("sliced", 1, "NVIDIA-A100-SXM4-40GB")
	delete(sliced.Status.Allocatable, "nvidia.com/gpu")
	sliced.Status.Allocatable["nvidia.com/mig-1g.5gb"] = resource.MustParse("7")
	h := newHarness(t, alone(defaultArgs()), amd, sliced, gpuNodeObject("t4", 1, "Tesla-T4"))
	await.Until(t, "both nodes to be known", func() bool { return len(h.plugin.shared.measured()) == 2 })
	for _, n := range h.plugin.shared.measured() {
		if n.Name == "amd" {
			t.Error("DCGM's coverage counts a node of AMD's")
		}
	}
}

func TestManyFaultsOfOneTimeSlicedGPUAreOne(t *testing.T) {
	t.Parallel()
	server := prometheusStub(t, nil, []string{fault("a", 0, "GPU-1"), series("xid", "a", 0, "GPU-1", 0, 79)})
	node := gpuNodeObject("a", 2, "Tesla-T4-SHARED", "nvidia.com/gpu.replicas", "4")
	node.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("8")
	h := newHarness(t, alone(defaultArgs(measuredBy(server))), node)
	awaitSignals(t, h, func(s *signals.GPUSnapshot) bool { return len(s.Faults("a", time.Now())) == 2 })
	if _, _, err := h.evaluate(t, h, podObject("p", strs{"nvidia.com/gpu": "4"},
		strs{"berth.dev/gpu-sharing": "shared"})); err != nil {
		t.Errorf("the four slices of the healthy GPU: %v", err)
	}
	if _, _, err := h.evaluate(t, h, podObject("q", strs{"nvidia.com/gpu": "5"},
		strs{"berth.dev/gpu-sharing": "shared"})); err == nil {
		t.Error("slices of the faulty GPU are given out")
	}
}
