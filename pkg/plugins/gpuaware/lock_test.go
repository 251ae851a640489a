package gpuaware

import (
	"sync/atomic"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/test/harness/await"
	"berth.dev/berth/test/harness/require"
)

const lockKey = "hami.io/mutex.lock"

func hamiNode(name string) *v1.Node {
	node := gpuNodeObject(name, 20, "Tesla-T4")
	node.Annotations = strs{"hami.io/node-nvidia-register": hamiRegister}
	return node
}

// lock is that of node n.
func (h *harness) lock(t *testing.T) string {
	t.Helper()
	n, err := h.client.CoreV1().Nodes().Get(h.ctx, "n", metav1.GetOptions{})
	require.NoError(t, err)
	return n.Annotations[lockKey]
}

func TestUnreserveGivesTheLockBack(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		before func(*testing.T, *harness, *v1.Pod)
		// bound is whether the pod is on its node all the same: then the lock stays, and the pod keeps its devices.
		bound bool
	}{
		{"when the pod is not bound", func(*testing.T, *harness, *v1.Pod) {}, false},
		{"not when the pod was bound all the same", func(t *testing.T, h *harness, pod *v1.Pod) {
			var seen atomic.Bool
			_, err := h.Factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
				UpdateFunc: func(_, obj any) {
					if obj.(*v1.Pod).Spec.NodeName != "" {
						seen.Store(true)
					}
				},
			})
			require.NoError(t, err)
			h.patchPod(t, pod.Name, `{"spec":{"nodeName":"n"}}`)
			await.Until(t, "the informer to tell of the binding", seen.Load)
		}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			profile := alone(defaultArgs())
			ignoreHAMi(profile)
			h := newHarness(t, profile, hamiNode("n"))
			assumed, state, err := h.reserve(t, h.add(t, podObject("p", strs{"nvidia.com/gpu": "1",
				"nvidia.com/gpumem": "4096"}, nil)))
			require.NoError(t, err)
			h.RunPreBindPreFlights(h.ctx, state, assumed, "n")
			if state.(*framework.CycleState).GetParallelPreBindPlugins().Has(Name) {
				t.Error("the lock would be held while other plugins do their work")
			}
			if status := h.RunPreBindPlugins(h.ctx, state, assumed, "n"); !status.IsSuccess() {
				t.Fatal(status)
			}
			if h.lock(t) == "" {
				t.Fatal("PreBind took no lock")
			}
			tc.before(t, h, assumed)
			h.RunReservePluginsUnreserve(h.ctx, state.(*framework.CycleState), assumed, "n")
			if got := h.lock(t) != ""; got != tc.bound {
				t.Errorf("the node is locked: %v, want %v", got, tc.bound)
			}
			holds := func() bool {
				_, ok := h.plugin.shared.ledger.of(assumed.UID)
				return ok
			}
			if tc.bound {
				await.Until(t, "the bound pod to hold its devices", holds)
			} else if holds() {
				t.Error("the promise outlived Unreserve")
			}
		})
	}
}

func (h *harness) patchPod(t *testing.T, pod, patch string) {
	t.Helper()
	if _, err := h.client.CoreV1().Pods("default").Patch(h.ctx, pod, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}
