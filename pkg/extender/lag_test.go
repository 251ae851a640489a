package extender

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/test/harness/require"
)

// Each question is one that only a scheduler asks which knows of the change already. Here the change comes when the
// extender has been asked, so without waiting it answers from what it had seen before.
func TestAnExtenderThatIsBehindWaitsForWhatTheSchedulerKnows(t *testing.T) {
	t.Parallel()
	deletes := func(t *testing.T, h *harness, name string) {
		if !h.api.Delete(v1.SchemeGroupVersion.WithResource("pods"), types.NamespacedName{Namespace: "default", Name: name}) {
			t.Errorf("there is no pod %s", name)
		}
	}
	full := []runtime.Object{gpuNode("n", 4), newPod("old", "n", 4, nil)}
	for name, tc := range map[string]struct {
		before []runtime.Object
		change func(*testing.T, *harness)
	}{
		"a pod that has ended": {full, func(t *testing.T, h *harness) { deletes(t, h, "old") }},
		"a node that has come": {nil, func(t *testing.T, h *harness) { h.add(t, gpuNode("n", 4)) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, tc.before...)
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				statuses, err := h.filter(t.Context(), newPod("new", "", 4, nil), []string{"n"})
				if err != nil || !statuses[0].IsSuccess() {
					t.Errorf("what is said of the node: %v, error %v", statuses, err)
				}
			}()
			tc.change(t, h)
			<-answered
		})
	}
}

func TestTheWaitForWhatTheSchedulerKnowsIsBounded(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ask := func(ctx context.Context) (time.Duration, error) {
		started := time.Now()
		statuses, err := h.filter(ctx, newPod("new", "", 1, nil), []string{"unknown"})
		if err == nil && statuses[0] != unknownNode {
			t.Errorf("what is said of the node: %v", statuses[0])
		}
		return time.Since(started), err
	}
	gone, cancel := context.WithTimeout(t.Context(), 2*lagPause)
	defer cancel()
	if _, err := ask(gone); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a caller that is gone: error %v", err)
	}
	if took, err := ask(t.Context()); err != nil || took < longestLag {
		t.Errorf("behind for long: answered after %s, error %v, want %s", took, err, longestLag)
	}
	if took, err := ask(t.Context()); err != nil || took >= longestLag {
		t.Errorf("behind still: answered after %s, error %v, want at once", took, err)
	}
}

// What the scheduler does not count, or has refused for its own reasons, is no sign of a lag.
func TestOnlyWhatTheSchedulerCountsIsASignOfLag(t *testing.T) {
	t.Parallel()
	node := gpuNode("n", 4)
	h := newHarness(t, node, shared("s", 1), newPod("old", "n", 2, nil))
	memory := newPod("memory", "", 1, map[string]string{"berth.dev/gpu-memory-min": "90Gi"})
	otherModel := newPod("model", "", 3, map[string]string{"berth.dev/gpu-models": "Tesla-T4"})
	hami := newPod("hami", "", 0, nil)
	hami.Spec.Containers[0].Resources.Requests["nvidia.com/gpumem"] = node.Status.Allocatable["nvidia.com/gpu"]
	got := map[string]bool{}
	for name, ask := range map[string]struct {
		pod  *v1.Pod
		node string
	}{
		"a model with more memory":       {memory, "n"},
		"a full node of another model":   {otherModel, "n"},
		"a share too large":              {share("share", "1001"), "s"},
		"a resource that no node offers": {hami, "n"},
		"room":                           {newPod("fits", "", 2, nil), "n"},
		"a pod too many":                 {newPod("large", "", 3, nil), "n"},
		"an unknown node":                {newPod("fits", "", 2, nil), "unknown"},
	} {
		_, behind, err := h.judge(t.Context(), ask.pod, []string{ask.node})
		require.NoError(t, err)
		got[name] = behind
	}
	if diff := cmp.Diff(map[string]bool{
		"a model with more memory": false, "a full node of another model": false, "a share too large": false,
		"a resource that no node offers": false, "room": false,
		"a pod too many": true, "an unknown node": true,
	}, got); diff != "" {
		t.Errorf("signs of a lag (-want +got):\n%s", diff)
	}
}
