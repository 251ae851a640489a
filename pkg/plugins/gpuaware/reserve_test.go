package gpuaware

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/test/harness/objects"
	"berth.dev/berth/test/harness/require"
)

type strs = map[string]string

const hamiRegister = "GPU-a,10,16384,100,NVIDIA-Tesla-T4,0,true:GPU-b,10,16384,100,NVIDIA-Tesla-T4,0,true:"

func sharedNode(name string, n int) *v1.Node {
	return gpuNodeObject(name, n, "Tesla-T4", "berth.dev/gpu-mode", "shared", "nvidia.com/gpu.memory", "16384")
}

// TestPodsOnASharedNodeWithoutHAMiWaitForNoLock places a whole GPU on one. Without HAMi's device plugin, a lock of the
// node would stay there.
func TestPodsOnASharedNodeWithoutHAMiWaitForNoLock(t *testing.T) {
	t.Parallel()
	node := sharedNode("n", 2)
	h := newHarness(t, alone(defaultArgs()), node)
	assumed, state, err := h.reserve(t, h.add(t, podObject("p", strs{"nvidia.com/gpu": "1"}, nil)))
	require.NoError(t, err)
	h.RunPreBindPreFlights(h.ctx, state, assumed, "n")
	if !state.(*framework.CycleState).GetParallelPreBindPlugins().Has(Name) {
		t.Error("PreBind runs alone, as if it took a lock")
	}
	bound := h.bind(t, state, assumed)
	if lock := h.lock(t); lock != "" {
		t.Errorf("the node is locked: %q", lock)
	}
	for key, value := range bound.Annotations {
		if strings.HasPrefix(key, "hami.io/") {
			t.Errorf("%s = %q on a node without HAMi", key, value)
		}
	}
	if got := bound.Annotations["alibabacloud.com/gpu-index"]; got != "0" {
		t.Errorf("index = %q, want 0 (all: %v)", got, bound.Annotations)
	}
}

func TestNothingIsWrittenWhereTheKubeletChooses(t *testing.T) {
	t.Parallel()
	h := newHarness(t, alone(defaultArgs()), gpuNodeObject("n", 2, "Tesla-T4"))
	bound, err := h.place(t, h.add(t, podObject("p", strs{"nvidia.com/gpu": "1"}, nil)))
	require.NoError(t, err)
	if len(bound.Annotations) != 0 || len(h.client.Actions()) > 0 &&
		h.client.Actions()[len(h.client.Actions())-1].GetVerb() == "patch" {
		t.Errorf("annotations = %v, want none and no patch", bound.Annotations)
	}
}

func TestProfilesShareTheirPromises(t *testing.T) {
	t.Parallel()
	h := newHarness(t, alone(defaultArgs()), sharedNode("n", 1))
	_, second := h.newFramework(t,
		alone(defaultArgs(func(a *config.GPUAwareArgs) { a.Resources = []string{"nvidia.com/gpu"} })))
	if second.shared == h.plugin.shared || second.shared.ledger != h.plugin.shared.ledger {
		t.Error("profiles with different resource names must have views of their own and one ledger")
	}
	_, third := h.newFramework(t, alone(defaultArgs()))
	if third.shared != h.plugin.shared {
		t.Error("profiles with equal names must share everything")
	}
}

func TestAStalePromiseIsNotWritten(t *testing.T) {
	t.Parallel()
	h := newHarness(t, alone(defaultArgs()), sharedNode("n", 1))
	assumed, state, err := h.reserve(t, h.add(t, podObject("p", nil, strs{"gpu-fraction": "0.5"})))
	require.NoError(t, err)
	h.plugin.shared.ledger.assign(assumed.UID, gpuview.Assignment{Node: "elsewhere"})
	status := h.plugin.PreBind(h.ctx, state, assumed, "n")
	if status.IsSuccess() || !strings.Contains(status.Message(), "no device of node n is assigned to it any more") {
		t.Errorf("PreBind = %v, want a refusal", status)
	}
	h.plugin.shared.ledger.assign(assumed.UID, gpuview.Assignment{Node: "n", Devices: []int{0}})
	assumed.Name = "gone"
	if status := h.plugin.PreBind(h.ctx, state, assumed, "n"); status.IsSuccess() {
		t.Error("PreBind of a pod that is gone succeeded")
	}
}

func TestAPodThatWasPromisedNothingIsBoundWithoutAPreFlight(t *testing.T) {
	t.Parallel()
	h := newHarness(t, alone(defaultArgs()), gpuNodeObject("n", 1, "Tesla-T4"))
	assumed, state, err := h.reserve(t, h.add(t, podObject("p", strs{"nvidia.com/gpu": "1"}, nil)))
	require.NoError(t, err)
	if status := h.plugin.PreBind(h.ctx, state, assumed, "n"); !status.IsSuccess() {
		t.Errorf("PreBind = %v, want success: nothing was promised", status)
	}
}

// On a node that HAMi has registered, whose GPUs a slice offers as well, the allocator chooses for a pod with a claim.
func TestNothingIsPromisedToPodsWithClaims(t *testing.T) {
	t.Parallel()
	mixed := gpuNodeObject("n", 2, "Tesla-T4")
	mixed.Annotations = strs{"hami.io/node-nvidia-register": hamiRegister}
	h := newHarness(t, gpuOnly(alone(defaultArgs())), plainClass("whole"), mixed, gpuSlice("n", 2, "Tesla T4", "16Gi"),
		objects.ClaimOf("c", objects.Request("a", "whole", 1)))
	awaitClaim(t, h, 1)
	pod := claiming("p")
	state, _, err := h.evaluate(t, h, pod)
	require.NoError(t, err)
	if status := h.plugin.Reserve(h.ctx, state, pod, "n"); !status.IsSuccess() {
		t.Fatal(status)
	}
	if a, ok := h.plugin.shared.ledger.of(pod.UID); ok {
		t.Errorf("promised %+v beside the claim", a)
	}
	if _, status := h.plugin.PreBindPreFlight(h.ctx, state, pod, "n"); !status.IsSkip() {
		t.Errorf("there is something to write: %v", status)
	}
}
