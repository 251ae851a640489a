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
	"k8s.io/apimachinery/pkg/util/wait"
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
	full := []runtime.Object{gpuNode("n", 4, nil), newPod("old", "n", 4, nil)}
	for name, tc := range map[string]struct {
		before []runtime.Object
		change func(*testing.T, *harness)
	}{
		"a pod that has ended": {full, func(t *testing.T, h *harness) { deletes(t, h, "old") }},
		"a node that has come": {nil, func(t *testing.T, h *harness) { h.add(t, gpuNode("n", 4, nil)) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, plain, tc.before...)
			h.whileBehind = wait.Backoff{Duration: time.Millisecond, Steps: 60_000}
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				verdicts, err := h.Filter(t.Context(), newPod("new", "", 4, nil), []string{"n"})
				if err != nil || verdicts[0] != (Verdict{}) {
					t.Errorf("what is said of the node: %+v, error %v", verdicts, err)
				}
			}()
			tc.change(t, h)
			<-answered
		})
	}
}

// lookedAt counts the looks of a question.
func lookedAt(ctx context.Context, t *testing.T, e *Extender, look func(i int) (bool, error)) (looks int, err error) {
	t.Helper()
	err = e.caughtUp(ctx, newPod("new", "", 1, nil), func() (bool, error) {
		looks++
		return look(looks)
	})
	return looks, err
}

func TestTheWaitForWhatTheSchedulerKnowsIsBounded(t *testing.T) {
	t.Parallel()
	registerMetrics()
	e := &Extender{whileBehind: wait.Backoff{Duration: time.Microsecond, Steps: 5}}
	broken := errors.New("broken")
	cancelled, cancel := context.WithCancel(t.Context())
	for _, tc := range []struct {
		name string
		ctx  context.Context
		look func(i int) (bool, error)
		want int
		err  error
	}{
		{"not behind", t.Context(), func(int) (bool, error) { return false, nil }, 1, nil},
		{"behind at first", t.Context(), func(i int) (bool, error) { return i < 3, nil }, 3, nil},
		{"an error", t.Context(), func(i int) (bool, error) { return true, broken }, 1, broken},
		{"a caller that is gone", cancelled, func(i int) (bool, error) { cancel(); return true, nil }, 1, context.Canceled},
		{"behind for long", t.Context(), func(int) (bool, error) { return true, nil }, 5, nil},
		{"behind still", t.Context(), func(int) (bool, error) { return true, nil }, 1, nil},
	} {
		looks, err := lookedAt(tc.ctx, t, e, tc.look)
		if looks != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%s: %d looks and error %v, want %d and %v", tc.name, looks, err, tc.want, tc.err)
		}
	}
	long := time.Now().Add(-hurried)
	e.waitedInVain.Store(&long)
	if looks, err := lookedAt(t.Context(), t, e, func(i int) (bool, error) { return i < 2, nil }); looks != 2 ||
		err != nil {
		t.Errorf("some time after a wait in vain: %d looks and error %v, want 2", looks, err)
	}
}

// What the scheduler does not count, or has refused for its own reasons, is no sign of a lag.
func TestOnlyWhatTheSchedulerCountsIsASignOfLag(t *testing.T) {
	t.Parallel()
	node := gpuNode("n", 4, nil)
	h := newHarness(t, plain, node, shared("s", 1), newPod("old", "n", 2, nil))
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
		_, _, behind, err := h.judge(t.Context(), ask.pod, []string{ask.node})
		if err != nil {
			t.Fatal(err)
		}
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
