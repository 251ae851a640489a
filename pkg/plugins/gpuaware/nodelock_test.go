package gpuaware

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/test/harness/await"
)

const lockKey = "hami.io/mutex.lock"

func hamiNode(name string) *v1.Node {
	node := gpuNodeObject(name, 20, "Tesla-T4")
	node.Annotations = strs{"hami.io/node-nvidia-register": hamiRegister}
	return node
}

// lockedBy makes a node whose lock is that old and names a pod.
func lockedBy(node *v1.Node, age time.Duration, pod string) *v1.Node {
	node.Annotations[lockKey] = time.Now().Add(-age).Format(time.RFC3339) + "," + pod
	return node
}

// lock is that of node n.
func (h *harness) lock(t *testing.T) string {
	t.Helper()
	n, err := h.client.CoreV1().Nodes().Get(h.ctx, "n", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return n.Annotations[lockKey]
}

func TestALockThatNoLongerCountsIsReplaced(t *testing.T) {
	t.Parallel()
	owner := func(change func(*v1.Pod)) *v1.Pod {
		pod := podObject("owner", strs{"nvidia.com/gpu": "1"}, nil)
		change(pod)
		return pod
	}
	for _, tc := range []struct {
		name  string
		lock  string
		age   time.Duration
		owner *v1.Pod
		event string
	}{
		{name: "its pod is gone", lock: "default,gone"},
		{name: "its pod has ended", lock: "default,owner", owner: owner(func(p *v1.Pod) {
			p.Spec.NodeName,
				p.Status.Phase = "n", v1.PodFailed
		})},
		{name: "its pod runs and so has its devices", lock: "default,owner",
			owner: owner(func(p *v1.Pod) { p.Spec.NodeName, p.Status.Phase = "n", v1.PodRunning })},
		{name: "its pod is bound to another node", lock: "default,owner",
			owner: owner(func(p *v1.Pod) { p.Spec.NodeName = "m" })},
		{name: "it is this pod's, of an earlier attempt", lock: "default,p"},
		{name: "it is older than five minutes", lock: "default,owner", age: 6 * time.Minute,
			owner: owner(func(p *v1.Pod) { p.Spec.NodeName = "n" }), event: "LockExpired"},
		{name: "it cannot be read", lock: "default"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, alone(defaultArgs()), lockedBy(hamiNode("n"), tc.age, tc.lock))
			if tc.owner != nil {
				h.add(t, tc.owner)
			}
			pod := h.add(t, podObject("p", strs{"nvidia.com/gpu": "1"}, nil))
			value, err := h.plugin.cluster.locks.take(h.ctx, pod, "n")
			if err != nil {
				t.Fatal(err)
			}
			if got := h.lock(t); got != value || !strings.HasSuffix(got, ",default,p") {
				t.Errorf("lock = %q, want %q, that of pod p", got, value)
			}
			if tc.event != "" {
				if got := <-h.Recorder.Events; !strings.Contains(got, tc.event) {
					t.Errorf("event %q, want %s", got, tc.event)
				}
			}
		})
	}
}

// TestPodsWaitForTheLockOfTheirNode lets several pods wait behind a pod that is not served yet, and removes each lock
// as a device plugin does.
func TestPodsWaitForTheLockOfTheirNode(t *testing.T) {
	t.Parallel()
	h := newHarness(t, alone(defaultArgs()), lockedBy(hamiNode("n"), 0, "default,owner"), hamiNode("other"))
	bound := podObject("owner", strs{"nvidia.com/gpu": "1"}, nil)
	bound.Spec.NodeName = "n"
	h.add(t, bound)
	locks := h.plugin.cluster.locks
	const pods = 4
	taken := make(chan string, pods)
	failed := make(chan error, pods)
	for i := range pods {
		pod := h.add(t, podObject(fmt.Sprint("p", i), strs{"nvidia.com/gpu": "1"}, nil))
		go func() {
			value, err := locks.take(h.ctx, pod, "n")
			if err != nil {
				failed <- err
				return
			}
			taken <- value
		}()
	}
	await.Until(t, "all pods to wait", func() bool {
		locks.mu.Lock()
		defer locks.mu.Unlock()
		return locks.lines["n"] != nil && locks.lines["n"].pods == pods
	})
	elsewhere := h.add(t, podObject("q", strs{"nvidia.com/gpu": "1"}, nil))
	if _, err := locks.take(h.ctx, elsewhere, "other"); err != nil {
		t.Errorf("taking the lock of another node: %v", err)
	}
	seen := map[string]bool{}
	for range pods {
		select {
		case value := <-taken:
			t.Fatalf("%q was taken while another pod held the lock", value)
		default:
		}
		h.unlock(t, "n")
		select {
		case value := <-taken:
			if got := h.lock(t); got != value || seen[value] {
				t.Errorf("lock = %q, want %q", got, value)
			}
			seen[value] = true
		case err := <-failed:
			t.Fatal(err)
		case <-time.After(time.Minute):
			t.Fatal("nobody took the lock that was removed")
		}
	}
	await.Until(t, "the line to be empty", func() bool {
		locks.mu.Lock()
		defer locks.mu.Unlock()
		return len(locks.lines) == 0
	})
}

// TestPodsTakeTheLockInTheOrderInWhichTheyCame lets each pod come when those before it wait.
func TestPodsTakeTheLockInTheOrderInWhichTheyCame(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		owner := podObject("owner", strs{"nvidia.com/gpu": "1"}, nil)
		owner.Namespace, owner.Spec.NodeName = "default", "n"
		client := fake.NewClientset(lockedBy(hamiNode("n"), 0, "default,owner"), owner)
		locks := newNodeLocks(client, events.NewFakeRecorder(10))
		const pods = 6
		taken := make(chan string, pods)
		for i := range pods {
			pod := podObject(fmt.Sprint("p", i), strs{"nvidia.com/gpu": "1"}, nil)
			pod.Namespace = "default"
			if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			go func() {
				if _, err := locks.take(t.Context(), pod, "n"); err != nil {
					t.Error(err)
				}
				taken <- pod.Name
			}()
			synctest.Wait()
		}
		var order []string
		for range pods {
			if _, err := client.CoreV1().Nodes().Patch(t.Context(), "n", types.MergePatchType,
				[]byte(`{"metadata":{"annotations":{"hami.io/mutex.lock":null}}}`), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			locks.wake("n")
			order = append(order, <-taken)
			synctest.Wait()
		}
		if diff := cmp.Diff([]string{"p0", "p1", "p2", "p3", "p4", "p5"}, order); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

func TestAPodGivesUpWaitingWhenItsBindingIsCanceled(t *testing.T) {
	t.Parallel()
	h := newHarness(t, alone(defaultArgs()), lockedBy(hamiNode("n"), 0, "default,owner"))
	h.add(t, podObject("owner", strs{"nvidia.com/gpu": "1"}, nil))
	ctx, cancel := context.WithCancelCause(h.ctx)
	pod := h.add(t, podObject("p", strs{"nvidia.com/gpu": "1"}, nil))
	result := make(chan error, 1)
	go func() {
		_, err := h.plugin.cluster.locks.take(ctx, pod, "n")
		result <- err
	}()
	preempted := errors.New("preempted")
	cancel(preempted)
	if err := <-result; !errors.Is(err, preempted) {
		t.Errorf("take = %v, want why it was canceled", err)
	}
}

func TestUnreserveGivesTheLockBack(t *testing.T) {
	t.Parallel()
	bind := func(t *testing.T, h *harness, pod *v1.Pod) {
		h.patchPod(t, pod.Name, `{"spec":{"nodeName":"n"}}`)
	}
	for _, tc := range []struct {
		name   string
		before func(*testing.T, *harness, *v1.Pod)
		// locked is whether the lock stays, bound whether the pod is on its node all the same and keeps its devices.
		locked, bound bool
	}{
		{"when the pod is not bound", func(*testing.T, *harness, *v1.Pod) {}, false, false},
		{"not when the pod was bound all the same", bind, true, true},
		{"not when the pod was bound all the same and that is known already", func(t *testing.T, h *harness, pod *v1.Pod) {
			var seen atomic.Bool
			_, err := h.Factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
				UpdateFunc: func(_, obj any) {
					if obj.(*v1.Pod).Spec.NodeName != "" {
						seen.Store(true)
					}
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			bind(t, h, pod)
			await.Until(t, "the informer to tell of the binding", seen.Load)
		}, true, true},
		{"not when another pod has taken it", func(t *testing.T, h *harness, _ *v1.Pod) {
			h.patchNode(t, "n",
				`{"metadata":{"annotations":{"hami.io/mutex.lock":"`+time.Now().Format(time.RFC3339)+`,default,q"}}}`)
		}, true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			profile := alone(defaultArgs())
			ignoreHAMi(profile)
			h := newHarness(t, profile, hamiNode("n"))
			assumed, state, err := h.reserve(t, h.add(t, podObject("p", strs{"nvidia.com/gpu": "1",
				"nvidia.com/gpumem": "4096"}, nil)))
			if err != nil {
				t.Fatal(err)
			}
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
			if got := h.lock(t) != ""; got != tc.locked {
				t.Errorf("the node is locked: %v, want %v", got, tc.locked)
			}
			holds := func() bool {
				_, ok := h.plugin.cluster.ledger.of(assumed.UID)
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

func (h *harness) unlock(t *testing.T, node string) {
	t.Helper()
	h.patchNode(t, node, `{"metadata":{"annotations":{"hami.io/mutex.lock":null}}}`)
}

func (h *harness) patchNode(t *testing.T, node, patch string) {
	t.Helper()
	if _, err := h.client.CoreV1().Nodes().Patch(h.ctx, node, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (h *harness) patchPod(t *testing.T, pod, patch string) {
	t.Helper()
	if _, err := h.client.CoreV1().Pods("default").Patch(h.ctx, pod, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}
