package gpuaware

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/test/harness/objects"
)

type strs = map[string]string

const hamiRegister = "GPU-a,10,16384,100,NVIDIA-Tesla-T4,0,true:GPU-b,10,16384,100,NVIDIA-Tesla-T4,0,true:"

func sharedNode(name string, n int) *v1.Node {
	return gpuNodeObject(name, n, "Tesla-T4", "berth.dev/gpu-mode", "shared", "nvidia.com/gpu.memory", "16384")
}

func TestSharesAreToldInTheDialectAskedFor(t *testing.T) {
	t.Parallel()
	hami := gpuNodeObject("n", 2, "Tesla-T4")
	hami.Annotations = strs{"hami.io/node-nvidia-register": hamiRegister}
	for _, tc := range []struct {
		name     string
		node     *v1.Node
		requests strs
		asked    strs
		key      string
		want     string
	}{
		{"openb", sharedNode("n", 2), nil, strs{"alibabacloud.com/gpu-milli": "500"}, "alibabacloud.com/gpu-index", "0"},
		{"openb with two GPUs", sharedNode("n", 2), nil, strs{"alibabacloud.com/gpu-milli": "1000",
			"alibabacloud.com/gpu-count": "2"}, "alibabacloud.com/gpu-index", "0-1"},
		{"KAI by fraction", sharedNode("n", 2), nil, strs{"gpu-fraction": "0.25"}, "runai-gpu", "0"},
		{"KAI by memory", sharedNode("n", 2), nil, strs{"gpu-memory": "4096"}, "runai-gpu", "0"},
		{"HAMi by UUID", hami, strs{"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4096"}, nil,
			"hami.io/vgpu-devices-to-allocate", "GPU-a,NVIDIA,4096,0:;"},
		{"HAMi names the node", hami, strs{"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4096"}, nil, "hami.io/vgpu-node",
			"n"},
		{"whole GPUs on a shared node get an index too", sharedNode("n", 2), strs{"nvidia.com/gpu": "2"}, nil,
			"alibabacloud.com/gpu-index", "0-1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			profile := alone(defaultArgs())
			ignoreHAMi(profile)
			h := newHarness(t, profile, tc.node)
			bound, err := h.place(t, h.add(t, podObject("p", tc.requests, tc.asked)))
			if err != nil {
				t.Fatal(err)
			}
			if got := bound.Annotations[tc.key]; got != tc.want {
				t.Errorf("annotation %s = %q, want %q (all: %v)", tc.key, got, tc.want, bound.Annotations)
			}
		})
	}
}

// TestNoDeviceServesMoreContainersThanItIsRegisteredFor has one GPU for three containers and one for one: four units,
// as the kubelet counts, and memory for more.
func TestNoDeviceServesMoreContainersThanItIsRegisteredFor(t *testing.T) {
	t.Parallel()
	node := gpuNodeObject("n", 4, "Tesla-T4")
	node.Annotations = strs{
		"hami.io/node-nvidia-register": "GPU-a,3,16384,100,NVIDIA-Tesla-T4,0,true:GPU-b,1,16384,100,NVIDIA-Tesla-T4,0,true:"}
	profile := alone(defaultArgs())
	ignoreHAMi(profile)
	h := newHarness(t, profile, node)
	for _, step := range []struct {
		pod, gpus string
		want      []string
		refusal   string
	}{
		{"both", "2", []string{"GPU-a", "GPU-b"}, ""},
		{"both again", "2", nil, "whose GPUs serve as many containers as they may (need 2, have 1)"},
		{"second", "1", []string{"GPU-a"}, ""},
		{"third", "1", []string{"GPU-a"}, ""},
	} {
		pod := h.add(t, podObject(step.pod, strs{"nvidia.com/gpu": step.gpus, "nvidia.com/gpumem": "1024"}, nil))
		assumed, _, err := h.reserve(t, pod)
		if step.refusal != "" {
			if err == nil || !strings.Contains(err.Error(), step.refusal) {
				t.Errorf("pod %s: %v, want %q", step.pod, err, step.refusal)
			}
			continue
		}
		if err != nil {
			t.Fatalf("pod %s: %v", step.pod, err)
		}
		promised, _ := h.plugin.cluster.ledger.of(assumed.UID)
		if diff := cmp.Diff(step.want, promised.UUIDs); diff != "" {
			t.Errorf("devices of pod %s (-want +got):\n%s", step.pod, diff)
		}
	}
}

// TestPodsOnASharedNodeWithoutHAMiWaitForNoLock places a whole GPU on one. Without HAMi's device plugin, a lock of the
// node would stay there.
func TestPodsOnASharedNodeWithoutHAMiWaitForNoLock(t *testing.T) {
	t.Parallel()
	node := sharedNode("n", 2)
	h := newHarness(t, alone(defaultArgs()), node)
	assumed, state, err := h.reserve(t, h.add(t, podObject("p", strs{"nvidia.com/gpu": "1"}, nil)))
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	if len(bound.Annotations) != 0 || len(h.client.Actions()) > 0 &&
		h.client.Actions()[len(h.client.Actions())-1].GetVerb() == "patch" {
		t.Errorf("annotations = %v, want none and no patch", bound.Annotations)
	}
}

// TestNoShareIsPromisedTwice places shares of all sizes and dialects as fast as cycles go, binds some at once, some
// late and some never, deletes others, and checks after each step what every device carries.
func TestNoShareIsPromisedTwice(t *testing.T) {
	t.Parallel()
	h := newHarness(t, alone(defaultArgs()), sharedNode("a", 4), sharedNode("b", 2), sharedNode("c", 1))
	random := rand.New(rand.NewPCG(7, 7))
	type running struct {
		pod   *v1.Pod
		state *framework.CycleState
	}
	var waiting, bound []running
	refused := 0
	for i := range 400 {
		switch random.IntN(6) {
		case 0:
			if len(waiting) > 0 {
				w := waiting[0]
				waiting = waiting[1:]
				bound = append(bound, running{pod: h.bind(t, w.state, w.pod)})
			}
			continue
		case 1:
			if len(waiting) > 0 { // binding fails
				w := waiting[len(waiting)-1]
				waiting = waiting[:len(waiting)-1]
				h.RunReservePluginsUnreserve(h.ctx, w.state, w.pod, w.pod.Spec.NodeName)
				if err := h.Cache.ForgetPod(h.logger, w.pod); err != nil {
					t.Fatal(err)
				}
			}
			continue
		case 2:
			if len(bound) > 0 {
				k := random.IntN(len(bound))
				if err := h.Cache.RemovePod(h.logger, bound[k].pod); err != nil {
					t.Fatal(err)
				}
				h.plugin.cluster.ledger.release(bound[k].pod.UID)
				bound = append(bound[:k], bound[k+1:]...)
			}
			continue
		}
		asked := []strs{
			{"alibabacloud.com/gpu-milli": fmt.Sprint(50 + random.IntN(950))},
			{"gpu-fraction": fmt.Sprintf("0.%02d", 1+random.IntN(99))},
			{"gpu-memory": fmt.Sprint(1 + random.IntN(16384))},
			nil,
		}[random.IntN(4)]
		requests := strs{}
		if asked == nil {
			requests["nvidia.com/gpu"] = fmt.Sprint(1 + random.IntN(2))
		}
		pod, state, err := h.reserve(t, h.add(t, podObject(fmt.Sprintf("p%d", i), requests, asked)))
		if err != nil {
			refused++
			continue
		}
		waiting = append(waiting, running{pod, state.(*framework.CycleState)})
		used := map[string]int{}
		for _, set := range [][]running{waiting, bound} {
			for _, r := range set {
				a, ok := h.plugin.cluster.ledger.of(r.pod.UID)
				if !ok || a.Node != r.pod.Spec.NodeName {
					t.Fatalf("pod %s on %s has the promise %+v", r.pod.Name, r.pod.Spec.NodeName, a)
				}
				for _, d := range a.Devices {
					used[fmt.Sprint(a.Node, d)] += a.Share.Milli
				}
			}
		}
		for device, milli := range used {
			if milli > 1000 {
				t.Fatalf("device %s carries %d milli-GPU after pod %d", device, milli, i)
			}
		}
	}
	if refused == 0 || len(bound) == 0 {
		t.Errorf("%d refused, %d bound: the test filled nothing", refused, len(bound))
	}
}

func TestRestartRebuildsPromisesFromAnnotations(t *testing.T) {
	t.Parallel()
	h := newHarness(t, alone(defaultArgs()), sharedNode("n", 2))
	var objects []runtime.Object
	for i, milli := range []string{"600", "700", "300"} {
		bound, err := h.place(t, h.add(t, podObject(fmt.Sprintf("p%d", i), nil, strs{"alibabacloud.com/gpu-milli": milli})))
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, bound)
	}
	next := newHarness(t, alone(defaultArgs()), append(objects, sharedNode("n", 2))...)
	bound, err := next.place(t, next.add(t, podObject("after", nil, strs{"alibabacloud.com/gpu-milli": "400"})))
	if err != nil {
		t.Fatal(err)
	}
	if got := bound.Annotations["alibabacloud.com/gpu-index"]; got != "0" {
		t.Errorf("index = %q, want 0: GPU 0 has 400 free, GPU 1 nothing", got)
	}
	if _, err = next.place(t,
		next.add(t, podObject("too-much", nil, strs{"alibabacloud.com/gpu-milli": "10"}))); err == nil {
		t.Error("a full node took another share")
	}
}

func TestProfilesShareTheirPromises(t *testing.T) {
	t.Parallel()
	h := newHarness(t, alone(defaultArgs()), sharedNode("n", 1))
	_, second := h.newFramework(t,
		alone(defaultArgs(func(a *config.GPUAwareArgs) { a.Resources = []string{"nvidia.com/gpu"} })))
	if second.cluster == h.plugin.cluster || second.cluster.ledger != h.plugin.cluster.ledger {
		t.Error("profiles with different resource names must have views of their own and one ledger")
	}
	_, third := h.newFramework(t, alone(defaultArgs()))
	if third.cluster != h.plugin.cluster {
		t.Error("profiles with equal names must share everything")
	}
}

func TestPromiseEndsWithThePod(t *testing.T) {
	t.Parallel()
	h := newHarness(t, alone(defaultArgs()), sharedNode("n", 1))
	pod := h.add(t, podObject("p", nil, strs{"gpu-fraction": "0.5"}))
	_, state, err := h.reserve(t, pod)
	if err != nil {
		t.Fatal(err)
	}
	ledger := h.plugin.cluster.ledger
	if _, ok := ledger.of(pod.UID); !ok {
		t.Fatal("no promise after Reserve")
	}
	for range 2 { // Unreserve is idempotent
		h.RunReservePluginsUnreserve(h.ctx, state, pod, "n")
	}
	if _, ok := ledger.of(pod.UID); ok || len(ledger.on("n")) > 0 {
		t.Error("the promise outlived Unreserve")
	}
}

func TestAStalePromiseIsNotWritten(t *testing.T) {
	t.Parallel()
	h := newHarness(t, alone(defaultArgs()), sharedNode("n", 1))
	assumed, state, err := h.reserve(t, h.add(t, podObject("p", nil, strs{"gpu-fraction": "0.5"})))
	if err != nil {
		t.Fatal(err)
	}
	h.plugin.cluster.ledger.promise(assumed.UID, gpuview.Assignment{Node: "elsewhere"})
	status := h.plugin.PreBind(h.ctx, state, assumed, "n")
	if status.IsSuccess() || !strings.Contains(status.Message(), "the promise on node n is gone") {
		t.Errorf("PreBind = %v, want a refusal", status)
	}
	h.plugin.cluster.ledger.promise(assumed.UID, gpuview.Assignment{Node: "n", Devices: []int{0}})
	assumed.Name = "gone"
	if status := h.plugin.PreBind(h.ctx, state, assumed, "n"); status.IsSuccess() {
		t.Error("PreBind of a pod that is gone succeeded")
	}
}

func TestAPodThatWasPromisedNothingIsBoundWithoutAPreFlight(t *testing.T) {
	t.Parallel()
	h := newHarness(t, alone(defaultArgs()), gpuNodeObject("n", 1, "Tesla-T4"))
	assumed, state, err := h.reserve(t, h.add(t, podObject("p", strs{"nvidia.com/gpu": "1"}, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if status := h.plugin.PreBind(h.ctx, state, assumed, "n"); !status.IsSuccess() {
		t.Errorf("PreBind = %v, want success: nothing was promised", status)
	}
}

func TestLedger(t *testing.T) {
	t.Parallel()
	l := newLedger()
	l.promise("p", gpuview.Assignment{Node: "a", Devices: []int{0}})
	l.promise("q", gpuview.Assignment{Node: "a", Devices: []int{1}})
	l.promise("p", gpuview.Assignment{Node: "b", Devices: []int{2}})
	if diff := cmp.Diff([][]types.UID{{"q"}, {"p"}}, [][]types.UID{l.on("a"), l.on("b")}); diff != "" {
		t.Errorf("pods by node (-want +got):\n%s", diff)
	}
	l.release("p")
	l.release("p")
	if _, ok := l.of("p"); ok || len(l.on("b")) > 0 {
		t.Error("a released promise is still there")
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
	pod := claiming("p", "c")
	state, _, err := h.evaluate(t, h, pod)
	if err != nil {
		t.Fatal(err)
	}
	if status := h.plugin.Reserve(h.ctx, state, pod, "n"); !status.IsSuccess() {
		t.Fatal(status)
	}
	if a, ok := h.plugin.cluster.ledger.of(pod.UID); ok {
		t.Errorf("promised %+v beside the claim", a)
	}
	if _, status := h.plugin.PreBindPreFlight(h.ctx, state, pod, "n"); !status.IsSkip() {
		t.Errorf("there is something to write: %v", status)
	}
}
