package gpuaware

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/test/harness/require"
)

// simulateGroup runs the cycle of a native pod group as the framework does: each pod is put on its node in the
// snapshot alone, and all is taken back in the end. It returns how many pods fit, and why the first of the others does
// not.
func (h *harness) simulateGroup(t *testing.T, pods ...*v1.Pod) (fit int, refusal string) {
	t.Helper()
	require.NoError(t, h.Cache.UpdateSnapshot(h.logger, h.Snapshot))
	infos, err := h.Snapshot.NodeInfos().List()
	require.NoError(t, err)
	for _, pod := range pods {
		state := framework.NewCycleState()
		state.SetPodGroupSchedulingCycle(framework.NewCycleState())
		if _, status, _ := h.RunPreFilterPlugins(h.ctx, state, pod); !status.IsSuccess() {
			t.Fatal(status)
		}
		for _, info := range infos {
			status := h.RunFilterPlugins(h.ctx, state, pod, info)
			if !status.IsSuccess() {
				refusal = status.Message()
				continue
			}
			assumed := pod.DeepCopy()
			assumed.Spec.NodeName = info.Node().Name
			added, _ := framework.NewPodInfo(assumed)
			require.NoError(t, h.Snapshot.AssumePod(added))
			defer func() {
				h.RunReservePluginsUnreserve(h.ctx, state, assumed, assumed.Spec.NodeName)
				require.NoError(t, h.Snapshot.ForgetPod(h.logger, assumed))
			}()
			if status := h.RunReservePluginsReserve(h.ctx, state, assumed, assumed.Spec.NodeName); !status.IsSuccess() {
				t.Fatalf("Reserve: %v", status)
			}
			fit++
			break
		}
	}
	return fit, refusal
}

// TestPodsOfANativeGroupSeeEachOther has groups of four on a node of two GPUs.
func TestPodsOfANativeGroupSeeEachOther(t *testing.T) {
	t.Parallel()
	hami := gpuNodeObject("n", 20, "Tesla-T4")
	hami.Annotations = strs{"hami.io/node-nvidia-register": hamiRegister}
	for _, tc := range []struct {
		name            string
		node            *v1.Node
		requests, asked strs
		want            int
		refusal         string
	}{
		{"shares by annotation", sharedNode("n", 2), nil, strs{"alibabacloud.com/gpu-milli": "600"}, 2,
			"free GPU share (need 600 milli-GPU"},
		{"shares of two GPUs each", sharedNode("n", 2), nil, strs{"alibabacloud.com/gpu-milli": "400",
			"alibabacloud.com/gpu-count": "2"}, 2,
			"free GPU share (need 400 milli-GPU"},
		{"shares by memory", sharedNode("n", 2), nil, strs{"gpu-memory": "9000"}, 2,
			"free GPU share (need 9000 MiB on one GPU, have under 8192)"},
		{"shares of HAMi's", hami, strs{"nvidia.com/gpu": "1", "nvidia.com/gpumem": "9000"}, nil, 2,
			"free GPU share (need 9000 MiB on one GPU, have under 8192)"},
		{"whole GPUs of a shared node", sharedNode("n", 2), strs{"nvidia.com/gpu": "1"}, nil, 2,
			"Insufficient nvidia.com/gpu"},
		{"whole GPUs that the kubelet gives out", gpuNodeObject("n", 2, "Tesla-T4"), strs{"nvidia.com/gpu": "1"}, nil, 2,
			"Insufficient nvidia.com/gpu"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			profile := alone(defaultArgs())
			ignoreHAMi(profile)
			h := newHarness(t, profile, tc.node)
			var pods []*v1.Pod
			group := "g"
			for i := range 4 {
				pod := podObject(fmt.Sprint("p", i), tc.requests, tc.asked)
				pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &group}
				pods = append(pods, h.add(t, pod))
			}
			for round := range 2 {
				if fit, refusal := h.simulateGroup(t, pods...); fit != tc.want || !strings.Contains(refusal, tc.refusal) {
					t.Errorf("cycle %d: %d pods fit, the next is refused by %q; want %d and %q", round, fit, refusal, tc.want,
						tc.refusal)
				}
			}
			if held := h.plugin.shared.ledger.on("n"); len(held) > 0 {
				t.Errorf("after the cycle %v are promised devices", held)
			}
			for i, pod := range pods[:2] {
				if _, _, err := h.reserve(t, pod); err != nil {
					t.Errorf("pod %d after the cycle: %v", i, err)
				}
			}
			if fit, _ := h.simulateGroup(t, pods[2:]...); fit != 0 {
				t.Errorf("%d pods fit beside those that run", fit)
			}
		})
	}
}

// TestTheDryRunOfAGangPromisesNothing reserves for a pod that is in no native group.
func TestTheDryRunOfAGangPromisesNothing(t *testing.T) {
	t.Parallel()
	h := newHarness(t, alone(defaultArgs()), sharedNode("n", 2))
	pod := h.add(t, podObject("p", nil, strs{"alibabacloud.com/gpu-milli": "600"}))
	require.NoError(t, h.Cache.UpdateSnapshot(h.logger, h.Snapshot))
	state := framework.NewCycleState()
	state.SetPodGroupSchedulingCycle(framework.NewCycleState())
	if _, status, _ := h.RunPreFilterPlugins(h.ctx, state, pod); !status.IsSuccess() {
		t.Fatal(status)
	}
	if status := h.RunReservePluginsReserve(h.ctx, state, pod, "n"); !status.IsSuccess() {
		t.Fatal(status)
	}
	if held := h.plugin.shared.ledger.on("n"); len(held) > 0 {
		t.Errorf("%v are promised devices", held)
	}
}
