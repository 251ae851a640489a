package gpuaware

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/test/harness/await"
	"berth.dev/berth/test/harness/require"
)

func TestAnEditIsSaidOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t, alone(defaultArgs()), sharedNode("n", 1))
	if _, err := h.place(t, h.add(t, podObject("p", nil, strs{"gpu-fraction": "0.7"}))); err != nil {
		t.Fatal(err)
	}
	h.patchPod(t, "p", `{"spec":{"nodeName":"n"}}`)
	h.patchPod(t, "p", `{"metadata":{"annotations":{"team":"a"}}}`)
	h.patchPod(t, "p", `{"metadata":{"annotations":{"gpu-fraction":"0.1"}}}`)
	h.patchPod(t, "p", `{"metadata":{"annotations":{"gpu-fraction":null}}}`)
	h.patchPod(t, "p", `{"metadata":{"annotations":{"hami.io/bind-phase":"failed"}}}`)
	// The refusal comes last, so that what was said of the edits has been said before it.
	first, second := <-h.Recorder.Events, <-h.Recorder.Events
	if !strings.Contains(first, "GrantEdited") || !strings.Contains(second, "DevicesRefused") {
		t.Errorf("events %q and %q, want one of the edits and one of the refusal", first, second)
	}
}

// TestAGrantIsTakenDownWhenThePodIsSeen removes the record itself: the process that saw it goes by what it saw.
func TestAGrantIsTakenDownWhenThePodIsSeen(t *testing.T) {
	t.Parallel()
	pod := assignedTo(podObject("p", nil, nil), "n", 0, 700, 11468)
	h := newHarness(t, alone(defaultArgs()), pod, sharedNode("n", 1))
	await.Until(t, "the grant to be taken down", func() bool { _, ok := h.plugin.shared.ledger.of("p"); return ok })
	bare := pod.DeepCopy()
	bare.Status.Conditions = nil
	require.NoError(t, h.Cache.UpdatePod(h.logger, pod, bare))
	if _, err := h.place(t, h.add(t, podObject("too-much", nil, strs{"gpu-fraction": "0.4"}))); err == nil {
		t.Error("what the pod holds was given away")
	}
	require.NoError(t, h.client.CoreV1().Pods("default").Delete(h.ctx, "p", metav1.DeleteOptions{}))
	await.Until(t, "the ledger to forget the pod", func() bool { _, ok := h.plugin.shared.ledger.of("p"); return !ok })
}

func TestStaleAnswersAreRemoved(t *testing.T) {
	t.Parallel()
	stale := strs{
		"gpu-fraction": "0.5", "alibabacloud.com/gpu-index": "7", "hami.io/vgpu-node": "gone",
		"hami.io/bind-phase":     "success",
		"berth.dev/gpu-assigned": `{"pod":"other","node":"n","devices":[0],"milli":1}`,
	}
	for _, tc := range []struct {
		name     string
		node     *v1.Node
		requests strs
		asked    strs
		want     []string
	}{
		{"on a shared node", sharedNode("n", 1), nil, stale, []string{"berth.dev/gpu-assigned", "gpu-fraction",
			"runai-gpu"}},
		{"where the kubelet chooses", gpuNodeObject("n", 1, "Tesla-T4"), strs{"nvidia.com/gpu": "1"},
			strs{"team": "a", "alibabacloud.com/gpu-index": "7", "hami.io/vgpu-node": "gone",
				"berth.dev/gpu-assigned": "{}"}, []string{"team"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, alone(defaultArgs()), tc.node)
			bound, err := h.place(t, h.add(t, podObject("p", tc.requests, tc.asked)))
			require.NoError(t, err)
			if len(bound.Annotations) != len(tc.want) {
				t.Errorf("annotations %v, want %v", bound.Annotations, tc.want)
			}
			for _, key := range tc.want {
				if bound.Annotations[key] == "" {
					t.Errorf("annotation %s is missing: %v", key, bound.Annotations)
				}
			}
		})
	}
}
