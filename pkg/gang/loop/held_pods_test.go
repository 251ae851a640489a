package loop

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/hold"
	"berth.dev/berth/pkg/gang/members"
	"berth.dev/berth/pkg/gang/waiting"
	"berth.dev/berth/test/harness/require"
)

var registerQueueMetrics = sync.OnceFunc(metrics.Register)

// holder is a plugin that holds pods back.
type holder struct{ holds func(*v1.Pod) bool }

func (holder) Name() string { return "Holder" }

func (h holder) PreEnqueue(_ context.Context, pod *v1.Pod) *fwk.Status {
	if h.holds(pod) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "held")
	}
	return nil
}

func nameOf(e fwk.QueuedEntityInfo) string {
	of := e.(klog.KMetadata)
	return of.GetNamespace() + "/" + of.GetName()
}

func queueWith(ctx context.Context, holds func(*v1.Pod) bool) internalqueue.SchedulingQueue {
	registerQueueMetrics()
	byName := func(a, b fwk.QueuedEntityInfo) bool { return nameOf(a) < nameOf(b) }
	plugins := map[string]map[string]fwk.PreEnqueuePlugin{v1.DefaultSchedulerName: {"Holder": holder{holds}}}
	return internalqueue.NewTestQueue(ctx, byName, internalqueue.WithPreEnqueuePluginMap(plugins))
}

// heldPods returns a queue in which each pod that is held is one of gang "g".
func heldPods(holds func(*v1.Pod) bool, inbox *waiting.Inbox) *HeldPods {
	holder := func(pod *v1.Pod, _ bool) gang.ID {
		if holds(pod) {
			return gang.ID{Namespace: pod.Namespace, Name: "g"}
		}
		return gang.ID{}
	}
	return NewHeldPods(holder, waiting.NewBacklog(nil, nil, nil), inbox)
}

// Held pods come out of the queue when they would without being held beside it, as they are by then.
func TestHeldPodsAgainstAQueueThatHoldsThem(t *testing.T) {
	t.Parallel()
	ctx, logger := t.Context(), klog.Logger{}
	rapid.Check(t, func(t *rapid.T) {
		held := map[apitypes.UID]bool{}
		holds := func(pod *v1.Pod) bool { return held[pod.UID] }
		plain := queueWith(ctx, holds)
		beside := heldPods(holds, waiting.NewInbox())
		beside.SchedulingQueue = queueWith(ctx, func(pod *v1.Pod) bool { return beside.Pod(pod.UID) != nil || holds(pod) })
		of := beside.holder
		beside.holder = func(pod *v1.Pod, here bool) gang.ID {
			if _, queued := beside.GetPod(pod.Name, pod.Namespace, nil); here && queued {
				t.Errorf("pod %s counts as held, and it is in the queue", pod.Name)
			}
			return of(pod, here)
		}
		queues := []internalqueue.SchedulingQueue{plain, beside}
		known := map[string]*v1.Pod{}
		version := 0
		newer := func(name string) *v1.Pod {
			version++
			uid := name
			if pod := known[name]; pod != nil {
				uid = string(pod.UID)
			}
			return st.MakePod().Name(name).Namespace("ns").UID(uid).SchedulerName(v1.DefaultSchedulerName).
				Label("version", fmt.Sprint(version)).Obj()
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			name := fmt.Sprint("p", rapid.IntRange(0, 5).Draw(t, "pod"))
			pod := known[name]
			switch step := rapid.IntRange(0, 4).Draw(t, "step"); {
			case step == 0 && pod == nil:
				pod = newer(name)
				known[name], held[pod.UID] = pod, rapid.Bool().Draw(t, "held")
				if rapid.IntRange(0, 5).Draw(t, "nominated") == 0 {
					pod.Status.NominatedNodeName = "n"
				}
				for _, q := range queues {
					q.Add(ctx, pod)
				}
			case step == 1 && pod != nil:
				known[name] = newer(name)
				for _, q := range queues {
					q.Update(ctx, pod, known[name])
				}
			case step == 2 && pod != nil && rapid.Bool().Draw(t, "made again"):
				next := newer(name)
				next.UID = apitypes.UID(fmt.Sprint(name, "-", version))
				known[name], held[next.UID] = next, held[pod.UID]
				delete(held, pod.UID)
				for _, q := range queues {
					q.Update(ctx, pod, next)
				}
			case step == 2 && pod != nil:
				for _, q := range queues {
					q.Delete(logger, pod)
				}
				delete(known, name)
			case step == 3:
				some := map[string]*v1.Pod{}
				for name, pod := range known {
					if rapid.Bool().Draw(t, "let go") {
						held[pod.UID] = false
					}
					some["ns/"+name] = pod
				}
				for _, q := range queues {
					q.Activate(logger, some)
				}
			case step == 4:
				for _, q := range queues {
					q.MoveAllToActiveOrBackoffQueue(logger, framework.EventAssignedPodAdd, nil, newer("bound"), nil)
				}
			}
			same := func(what string, list func(internalqueue.SchedulingQueue) []*v1.Pod) {
				if diff := cmp.Diff(versions(list(plain)), versions(list(beside))); diff != "" {
					t.Fatalf("%s (-held in the queue +beside it):\n%s", what, diff)
				}
			}
			same("active pods", internalqueue.SchedulingQueue.PodsInActiveQ)
			same("other pods", internalqueue.SchedulingQueue.UnschedulablePods)
			same("all pods", func(q internalqueue.SchedulingQueue) []*v1.Pod { pods, _ := q.PendingPods(); return pods })
			for _, pod := range beside.SchedulingQueue.UnschedulablePods() {
				if beside.Pod(pod.UID) != nil {
					t.Fatalf("%s is held in the queue and beside it", pod.Name)
				}
			}
		}
	})
}

func versions(pods []*v1.Pod) []string {
	out := make([]string, len(pods))
	for i, pod := range pods {
		out[i] = pod.Name + " " + pod.Labels["version"]
	}
	slices.SortFunc(out, strings.Compare)
	return out
}

//nolint:paralleltest // The gauge is of the process.
func TestHeldPodsAreNotInTheQueue(t *testing.T) {
	registerQueueMetrics()
	gated := func() float64 {
		n, err := testutil.GetGaugeMetricValue(metrics.GatedPods())
		require.NoError(t, err)
		return n
	}
	before := gated()
	ctx, logger := t.Context(), klog.Logger{}
	let := false
	holds := func(*v1.Pod) bool { return !let }
	h := heldPods(holds, waiting.NewInbox())
	h.SchedulingQueue = queueWith(ctx, func(pod *v1.Pod) bool { return h.Pod(pod.UID) != nil || holds(pod) })
	for _, name := range []string{"c", "a", "b"} {
		h.Add(ctx, st.MakePod().Name(name).Namespace("ns").UID(name).SchedulerName(v1.DefaultSchedulerName).Obj())
	}
	if n := gated() - before; n != 3 {
		t.Errorf("the metrics count %v gated pods, want 3", n)
	}
	if pods, _ := h.SchedulingQueue.PendingPods(); len(pods) > 0 {
		t.Fatalf("the queue has %d pods that are held", len(pods))
	}
	let = true
	h.Review(logger)
	if n := gated() - before; n != 0 {
		t.Errorf("the metrics count %v gated pods when all have entered the queue", n)
	}
	var order []string
	for range 3 {
		entity, err := h.Pop(logger)
		require.NoError(t, err)
		order = append(order, nameOf(entity))
	}
	if diff := cmp.Diff([]string{"ns/a", "ns/b", "ns/c"}, order); diff != "" {
		t.Errorf("pods that enter together (-want +got):\n%s", diff)
	}
}

func TestAGangIsTriedWhenAMemberIsAskedForThatItHolds(t *testing.T) {
	t.Parallel()
	registerQueueMetrics()
	ctx, logger := t.Context(), klog.Logger{}
	inbox := waiting.NewInbox()
	holds := func(pod *v1.Pod) bool { return pod.Name != "single" }
	h := heldPods(holds, inbox)
	h.SchedulingQueue = queueWith(ctx, holds)
	told := map[waiting.Happening]bool{{Only: gang.ID{Namespace: "ns", Name: "g"}}: true}
	// One that has led is in the queue.
	for name, want := range map[string]map[waiting.Happening]bool{"member": told, "leader": told, "single": {}} {
		pod := st.MakePod().Name(name).Namespace("ns").UID(name).SchedulerName(v1.DefaultSchedulerName).Obj()
		if name == "leader" {
			h.SchedulingQueue.Add(ctx, pod)
		} else {
			h.Add(ctx, pod)
		}
		h.Activate(logger, map[string]*v1.Pod{"ns/" + name: pod})
		if diff := cmp.Diff(want, inbox.Take().Happenings); diff != "" {
			t.Errorf("what the loop is told when %s is asked for (-want +got):\n%s", name, diff)
		}
	}
	if active := h.PodsInActiveQ(); len(active) != 1 || active[0].Name != "single" {
		t.Errorf("%d pods are tried, want the single one", len(active))
	}
}

//nolint:paralleltest // The metrics are of the process.
func TestAPodThatCouldEvictOthersIsWokenAfterThoseThatComeFirst(t *testing.T) {
	ctx, logger := t.Context(), klog.Logger{}
	pod := gpuPod("pod", "", "8")
	pod.Namespace, pod.Spec.Priority, pod.Spec.SchedulerName = "ns", ptr.To[int32](5), v1.DefaultSchedulerName
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	require.NoError(t, indexer.Add(pod))
	account := loopOverAFullNode(gang.Backoff{}).List.Capacity
	backlog := waiting.NewBacklog(account, &hold.Gate{}, &members.Directory{Lister: corelisters.NewPodLister(indexer)})
	h := NewHeldPods(func(*v1.Pod, bool) gang.ID { return gang.ID{} }, backlog, waiting.NewInbox())
	h.SchedulingQueue = queueWith(ctx, func(*v1.Pod) bool { return false })
	h.Add(ctx, pod)
	entity, err := h.Pop(logger)
	require.NoError(t, err)
	tried, _ := entity.(*framework.QueuedPodInfo)
	tried.UnschedulablePlugins = sets.New("Fit")
	require.NoError(t, h.AddUnschedulablePodIfNotPresent(logger, tried, h.SchedulingCycle()))
	backlog.Failed(pod, gang.Key{})
	backlog.Next(nil, time.Now())
	h.MoveAllToActiveOrBackoffQueue(logger, framework.EventForceActivate, nil, nil, nil)
	if n := len(h.SchedulingQueue.UnschedulablePods()); n != 1 {
		t.Errorf("%d pods wait after the event, want 1", n)
	}
	h.wakeLate(logger, h.takeLate())
	if n := len(h.SchedulingQueue.UnschedulablePods()); n != 0 {
		t.Errorf("%d pods wait after the turn of the loop, want 0", n)
	}
}

// The pod is popped when the queue has it again and is not done with it yet: the log tells when that is.
//
//nolint:paralleltest // The metrics are of the process.
func TestATriedPodIsNotLostWhenItIsPoppedBeforeItIsDone(t *testing.T) {
	ctx := t.Context()
	h := heldPods(func(*v1.Pod) bool { return false }, waiting.NewInbox())
	h.SchedulingQueue = queueWith(ctx, func(*v1.Pod) bool { return false })
	h.Add(ctx, st.MakePod().Name("a").Namespace("ns").UID("a").SchedulerName(v1.DefaultSchedulerName).Obj())
	entity, err := h.Pop(klog.Logger{})
	require.NoError(t, err)
	popped, dropped := make(chan string, 1), make(chan struct{}, 1)
	pop := func() {
		logger := funcr.New(func(_, text string) {
			if strings.Contains(text, "Discarding the popped entity") {
				dropped <- struct{}{}
			}
		}, funcr.Options{})
		entity, err := h.Pop(logger)
		if err != nil || entity == nil {
			popped <- fmt.Sprint(err)
			return
		}
		popped <- nameOf(entity)
	}
	got := ""
	tried := funcr.New(func(_, text string) {
		if !strings.Contains(text, "Pod moved to an internal scheduling queue") {
			return
		}
		go pop()
		select {
		case got = <-popped:
		case <-dropped:
		}
	}, funcr.Options{Verbosity: 3})
	// It is tried again at once, as after an error of the API.
	pod, _ := entity.(*framework.QueuedPodInfo)
	h.Activate(klog.Logger{}, map[string]*v1.Pod{"a": pod.Pod})
	pod.PendingPlugins = sets.New("Holder")
	require.NoError(t, h.AddUnschedulablePodIfNotPresent(tried, pod, h.SchedulingCycle()))
	if got == "" {
		select {
		case got = <-popped:
		case <-time.After(10 * time.Second):
			t.Fatal("the pod is in no queue")
		}
	}
	if got != "ns/a" {
		t.Errorf("popped %s, want ns/a", got)
	}
}
