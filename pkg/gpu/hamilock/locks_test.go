package hamilock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"

	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/test/harness/require"
)

// bed is a cluster with a recorder.
type bed struct {
	*Locks
	client *fake.Clientset
	events *events.FakeRecorder
}

func newBed(objects ...runtime.Object) *bed {
	b := &bed{client: fake.NewClientset(objects...), events: events.NewFakeRecorder(10)}
	b.Locks = New(b.client, b.events)
	return b
}

// locked makes a node; its lock is that old and names a pod.
func locked(name string, age time.Duration, pod string) *v1.Node {
	node := lockedNode(time.Now().Add(-age).Format(time.RFC3339) + "," + pod)
	node.Name = name
	return node
}

func podOf(name string, change ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func onNode(name string) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.NodeName = name } }

func inPhase(phase v1.PodPhase) func(*v1.Pod) { return func(p *v1.Pod) { p.Status.Phase = phase } }

func (b *bed) node(t *testing.T) *v1.Node {
	t.Helper()
	n, err := b.client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
	require.NoError(t, err)
	return n
}

func (b *bed) value(t *testing.T) string {
	t.Helper()
	return b.node(t).Annotations[gpuview.HAMiLockKey]
}

// set writes another lock, "" for none, as the device plugin and other schedulers do, and tells of it as an informer
// does.
func (b *bed) set(t *testing.T, value string) {
	t.Helper()
	before := b.node(t)
	word := "null"
	if value != "" {
		word = `"` + value + `"`
	}
	after, err := b.client.CoreV1().Nodes().Patch(t.Context(), "n", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"hami.io/mutex.lock":`+word+`}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	b.NodeChanged(before, after)
}

func TestALockThatNoLongerCountsIsReplaced(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		lock  string
		age   time.Duration
		owner *v1.Pod
		event string
	}{
		{name: "its pod is gone", lock: "default,gone"},
		{name: "its pod has ended", lock: "default,owner", owner: podOf("owner", onNode("n"), inPhase(v1.PodFailed))},
		{name: "its pod runs and so has its devices", lock: "default,owner",
			owner: podOf("owner", onNode("n"), inPhase(v1.PodRunning))},
		{name: "its pod is bound to another node", lock: "default,owner", owner: podOf("owner", onNode("m"))},
		{name: "it is this pod's, of an earlier attempt", lock: "default,p"},
		{name: "it is older than five minutes", lock: "default,owner", age: 6 * time.Minute,
			owner: podOf("owner", onNode("n")), event: "LockExpired"},
		{name: "it cannot be read", lock: "default"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			pod := podOf("p")
			objects := []runtime.Object{locked("n", tc.age, tc.lock), pod}
			if tc.owner != nil {
				objects = append(objects, tc.owner)
			}
			b := newBed(objects...)
			value, err := b.Acquire(t.Context(), pod, "n")
			require.NoError(t, err)
			if got := b.value(t); got != value || !strings.HasSuffix(got, ",default,p") {
				t.Errorf("lock = %q, want %q, that of pod p", got, value)
			}
			if tc.event != "" {
				if got := <-b.events.Events; !strings.Contains(got, tc.event) {
					t.Errorf("event %q, want %s", got, tc.event)
				}
			}
		})
	}
}

// TestPodsTakeTheLockInTheOrderInWhichTheyCame lets each pod come when those before it wait, and removes each lock as a
// device plugin does.
func TestPodsTakeTheLockInTheOrderInWhichTheyCame(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		other := locked("other", 0, "")
		other.Annotations = nil
		b := newBed(locked("n", 0, "default,owner"), other, podOf("owner", onNode("n")))
		const pods = 6
		taken := make(chan string, pods)
		for i := range pods {
			pod := podOf(fmt.Sprint("p", i))
			require.NoError(t, b.client.Tracker().Add(pod))
			go func() {
				value, err := b.Acquire(t.Context(), pod, "n")
				if err != nil {
					t.Error(err)
				}
				if got := b.value(t); got != value {
					t.Errorf("lock = %q, want %q", got, value)
				}
				taken <- pod.Name
			}()
			synctest.Wait()
		}
		if got := b.queues["n"]; got == nil || got.pods != pods {
			t.Errorf("the line is %+v, want %d pods", got, pods)
		}
		if _, err := b.Acquire(t.Context(), podOf("q"), "other"); err != nil {
			t.Errorf("taking the lock of another node: %v", err)
		}
		var order []string
		for range pods {
			if len(taken) > 0 {
				t.Fatalf("%s took the lock while another pod held it", <-taken)
			}
			b.set(t, "")
			order = append(order, <-taken)
			synctest.Wait()
		}
		if diff := cmp.Diff([]string{"p0", "p1", "p2", "p3", "p4", "p5"}, order); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
		if len(b.queues) > 0 {
			t.Errorf("lines of nodes for which no pod waits are kept: %v", b.queues)
		}
	})
}

func TestAPodGivesUpWaitingWhenItsBindingIsCanceled(t *testing.T) {
	t.Parallel()
	b := newBed(locked("n", 0, "default,owner"), podOf("owner"))
	ctx, cancel := context.WithCancelCause(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := b.Acquire(ctx, podOf("p"), "n")
		result <- err
	}()
	preempted := errors.New("preempted")
	cancel(preempted)
	if err := <-result; !errors.Is(err, preempted) {
		t.Errorf("take = %v, want why it was canceled", err)
	}
}

func TestALockIsGivenBack(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		// pod is the pod as the API server knows it by then, nil if it is gone.
		pod *v1.Pod
		// other is the lock of another pod that has taken the node since.
		other string
		want  bool
	}{
		{"when the pod is not bound", podOf("p"), "", true},
		{"when the pod is gone", nil, "", true},
		{"when another pod of its name is bound", podOf("p", onNode("n"), func(p *v1.Pod) { p.UID = "another" }), "", true},
		{"not when the pod was bound all the same", podOf("p", onNode("n")), "", false},
		{"not when another pod has taken it", podOf("p"), "2026-08-01T12:00:00Z,default,q", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			pod := podOf("p")
			objects := []runtime.Object{locked("n", 0, "default,p")}
			if tc.pod != nil {
				objects = append(objects, tc.pod)
			}
			b := newBed(objects...)
			value, err := b.Acquire(t.Context(), pod, "n")
			require.NoError(t, err)
			if tc.other != "" {
				b.set(t, tc.other)
			}
			require.NoError(t, b.Release(t.Context(), pod, "n", value))
			if got := b.value(t) == ""; got != tc.want {
				t.Errorf("the node is unlocked: %v, want %v", got, tc.want)
			}
		})
	}
}
