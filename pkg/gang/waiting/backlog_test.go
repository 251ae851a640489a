package waiting

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	apitypes "k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"pgregory.net/rapid"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/members"
	"berth.dev/berth/pkg/process"
)

const gpus v1.ResourceName = "nvidia.com/gpu"

// pods are those of one namespace by name.
type pods map[string]*v1.Pod

// Pods returns them whatever the namespace.
func (p pods) Pods(string) corelisters.PodNamespaceLister { return p }

// List is not asked for.
func (p pods) List(labels.Selector) ([]*v1.Pod, error) { return nil, nil }

// Get returns the pod of that name.
func (p pods) Get(name string) (*v1.Pod, error) {
	if p[name] == nil {
		return nil, fmt.Errorf("no pod %s", name)
	}
	return p[name], nil
}

// world is a cluster in which pods are tried on real counts of what is free.
type world struct {
	*Backlog
	index *capacity.Index
	now   time.Time
	// nodes holds how many GPUs each node has, placed the pods on nodes, pending those without.
	nodes   map[string]int64
	placed  map[string]*v1.Pod
	pending pods
	// woken are the pods that an event has woken or the backlog has named since they were tried last.
	woken map[string]bool
	tries int
	// kept are nodes on which GPUs are kept for a gang, but for pods that mayEnter names. held counts what is kept.
	kept     map[string]*capacity.Kept
	mayEnter func(*v1.Pod) bool
	held     int
}

func newWorld() *world {
	w := &world{now: time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC), nodes: map[string]int64{},
		placed: map[string]*v1.Pod{}, pending: pods{}, woken: map[string]bool{},
		kept: map[string]*capacity.Kept{}, mayEnter: func(*v1.Pod) bool { return false }}
	w.index = capacity.New(func(v1.ResourceName) bool { return false },
		func(*v1.Pod) *process.Traits { return process.AllTraits })
	w.Backlog = NewBacklog(w.index, w, &members.Directory{Lister: w.pending})
	return w
}

// newFullWorld has one node of two GPUs, whose pod has the priority of one that waits for one of them.
func newFullWorld() *world {
	w := newWorld()
	w.node("a", 2)
	w.pod("running", 2, 5)
	w.settle()
	w.pod("waits", 1, 5)
	w.settle()
	return w
}

func (w *world) node(name string, n int64) {
	w.nodes[name] = n
	w.index.Feed.SetNode(st.MakeNode().Name(name).Capacity(map[v1.ResourceName]string{gpus: fmt.Sprint(n),
		v1.ResourceCPU: "64", v1.ResourcePods: "110"}).Obj())
	w.event()
}

// pod comes and is tried.
func (w *world) pod(name string, n int64, priority int32) {
	pod := st.MakePod().Name(name).UID(name).Priority(priority).Req(map[v1.ResourceName]string{gpus: fmt.Sprint(n)}).Obj()
	pod.CreationTimestamp.Time = w.now
	w.pending[name] = pod
	w.woken[name] = true
}

// free is what is left of a node for the pod.
func (w *world) free(node string, by *v1.Pod) int64 {
	left := w.nodes[node]
	if kept := w.kept[node]; kept != nil && !w.mayEnter(by) {
		left -= wanted(kept.Pod)
	}
	for _, pod := range w.placed {
		if pod.Spec.NodeName == node {
			left -= wanted(pod)
		}
	}
	return left
}

func wanted(pod *v1.Pod) int64 {
	n := pod.Spec.Containers[0].Resources.Requests[gpus]
	return n.Value()
}

// try places the pod or has it fail.
func (w *world) try(name string) {
	w.tries++
	pod := w.pending[name]
	delete(w.woken, name)
	for _, node := range slices.Sorted(maps.Keys(w.nodes)) {
		if w.free(node, pod) < wanted(pod) {
			continue
		}
		bound := pod.DeepCopy()
		bound.Spec.NodeName = node
		delete(w.pending, name)
		w.placed[name] = bound
		w.index.Feed.SetPod(bound, gang.ID{})
		w.Gone(bound.UID)
		return
	}
	w.Failed(pod, gang.Key{Priority: corev1helpers.PodPriority(pod), Time: pod.CreationTimestamp.Time})
}

// end ends a pod, wherever it is.
func (w *world) end(name string) {
	uid := apitypes.UID(name)
	if pod := w.placed[name]; pod != nil {
		delete(w.placed, name)
		w.index.Feed.DropPod(uid)
		w.Gone(uid)
		w.event()
		return
	}
	delete(w.pending, name)
	delete(w.woken, name)
	w.Gone(uid)
}

// event wakes the pods that the backlog does not hold.
func (w *world) event() {
	for name, pod := range w.pending {
		if !w.Holds(pod.UID) {
			w.woken[name] = true
		}
	}
}

// look is a turn of the loop: what is named is woken.
func (w *world) look() []string {
	gained, _ := w.index.Looks.Refresh()
	var named []string
	for _, pod := range w.Next(gained, w.now) {
		named = append(named, pod.Name)
		w.woken[pod.Name] = true
	}
	return named
}

// settle tries all that are woken, in the order of the queue, until nothing is left to do.
func (w *world) settle() {
	for range 10_000 {
		w.look()
		names := slices.SortedFunc(maps.Keys(w.woken), func(a, b string) int {
			return first(&waiting{failure: failure{pod: w.pending[a], key: keyOf(w.pending[a])}},
				&waiting{failure: failure{pod: w.pending[b], key: keyOf(w.pending[b])}})
		})
		if len(names) == 0 {
			return
		}
		w.try(names[0])
	}
	panic("no end")
}

func keyOf(pod *v1.Pod) gang.Key {
	return gang.Key{Priority: corev1helpers.PodPriority(pod), Time: pod.CreationTimestamp.Time}
}

func TestOneEndTriesOnePod(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.node("a", 8)
	for i := range 108 {
		w.now = w.now.Add(time.Second)
		w.pod(fmt.Sprintf("pod-%03d", i), 1, 0)
	}
	w.settle()
	if len(w.placed) != 8 {
		t.Fatalf("%d pods have a node, want 8", len(w.placed))
	}
	for i := range 8 {
		w.tries = 0
		w.end(fmt.Sprintf("pod-%03d", i))
		w.settle()
		if next := fmt.Sprintf("pod-%03d", 8+i); w.placed[next] == nil {
			t.Errorf("pod %d has ended, and %s, which comes first, has no node", i, next)
		}
		if w.tries != 1 {
			t.Errorf("%d pods were tried when one ended, want 1", w.tries)
		}
	}
}

func TestPodsThatDifferAreTriedAFewAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.node("a", 8)
	w.pod("running", 8, 0)
	w.settle()
	for i := range 100 {
		w.now = w.now.Add(time.Second)
		w.pod(fmt.Sprintf("pod-%03d", i), 8-int64(i%8), 0)
	}
	w.settle()
	w.tries = 0
	w.end("running")
	w.settle()
	if w.placed["pod-000"] == nil {
		t.Error("the pod that comes first has no node")
	}
	if w.tries > leastAtOnce+1 {
		t.Errorf("%d pods were tried for one node", w.tries)
	}
}

func TestManyAreTriedAtOnceWhereManyGetNodes(t *testing.T) {
	t.Parallel()
	w := newWorld()
	for i := range 1000 {
		w.pod(fmt.Sprintf("pod-%03d", i), 1, 0)
	}
	w.settle()
	for i := range 200 {
		w.node(fmt.Sprintf("node-%03d", i), 8)
	}
	rounds := 0
	for len(w.pending) > 0 {
		names := w.look()
		if rounds++; len(names) == 0 || rounds > 20 {
			t.Fatalf("after %d rounds %d pods still wait", rounds, len(w.pending))
		}
		for _, name := range names {
			w.try(name)
		}
	}
}

func TestRoomIsNotPromisedTwice(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.node("a", 1)
	w.pod("running", 1, 0)
	w.settle()
	w.pod("b", 1, 0)
	w.pod("c", 1, 0)
	w.settle()
	w.end("running")
	if diff := cmp.Diff([]string{"b"}, w.look()); diff != "" {
		t.Fatalf("pods to try (-want +got):\n%s", diff)
	}
	w.node("other", 0)
	if again := w.look(); again != nil {
		t.Errorf("while one pod is tried for the room, others are named: %v", again)
	}
	w.now = w.now.Add(triedFor)
	if diff := cmp.Diff([]string{"c"}, w.look()); diff != "" {
		t.Errorf("pods to try when nothing came of the first (-want +got):\n%s", diff)
	}
}

func TestPodsThatMayEvictOthersAreLeftToTheQueue(t *testing.T) {
	t.Parallel()
	w := newFullWorld()
	if !w.Holds("waits") {
		t.Error("a pod is not held whose priority is that of all that run")
	}
	w.node("b", 1)
	w.settle()
	if w.placed["waits"] == nil {
		t.Fatal("a node came, and the pod that waited has none")
	}
	w.end("waits")
	w.pod("lesser", 1, 1)
	w.settle()
	w.pod("waits", 1, 5)
	w.settle()
	if w.Holds("waits") {
		t.Error("a pod is held for which another could be evicted")
	}
	w.end("lesser")
	w.settle()
	w.pod("last", 1, 5)
	w.settle()
	if !w.Holds("last") {
		t.Fatal("a pod is not held although no pod is less important")
	}
	w.end("waits")
	w.pod("lesser", 1, 1)
	w.try("lesser") // it takes the place before the other is tried
	w.look()
	if w.Holds("last") {
		t.Error("a pod is held while there is one to evict")
	}
}

func TestRoomIsNotMissedWhereAPodToEvictComesMeanwhile(t *testing.T) {
	t.Parallel()
	w := newFullWorld()
	w.end("running")
	w.pod("lesser", 1, 1)
	w.try("lesser")
	w.settle()
	if w.placed["waits"] == nil {
		t.Error("a pod for which there is room waits for the next event")
	}
}

// Whatever comes and ends, no pod waits for which a node has room, none is owned that is gone, and the counts agree.
func TestNoPodIsForgotten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		w.mayEnter = func(pod *v1.Pod) bool { return corev1helpers.PodPriority(pod) == 1 && pod.UID[len(pod.UID)-1]%2 == 0 }
		w.node("node-0", 4)
		for step := range rapid.IntRange(1, 60).Draw(t, "steps") {
			w.now = w.now.Add(time.Second)
			switch rapid.IntRange(0, 8).Draw(t, "step") {
			case 0, 1, 2:
				w.pod(fmt.Sprintf("pod-%03d", step), rapid.Int64Range(1, 5).Draw(t, "GPUs"),
					rapid.Int32Range(0, 1).Draw(t, "priority"))
			case 3, 4:
				names := slices.Sorted(maps.Keys(w.placed))
				names = append(names, slices.Sorted(maps.Keys(w.pending))...)
				if len(names) > 0 {
					w.end(rapid.SampledFrom(names).Draw(t, "pod"))
				}
			case 5:
				w.node(fmt.Sprintf("node-%d", rapid.IntRange(0, 2).Draw(t, "node")), rapid.Int64Range(0, 6).Draw(t, "has"))
			case 6:
				// A pod is tried although nothing helps it, as after five minutes.
				if names := slices.Sorted(maps.Keys(w.pending)); len(names) > 0 {
					w.woken[rapid.SampledFrom(names).Draw(t, "pod")] = true
				}
			case 7:
				if names := slices.Sorted(maps.Keys(w.woken)); len(names) > 0 {
					w.try(rapid.SampledFrom(names).Draw(t, "pod"))
				}
				w.look()
			case 8:
				w.keep(fmt.Sprintf("node-%d", rapid.IntRange(0, 2).Draw(t, "node")), rapid.Int64Range(0, 6).Draw(t, "kept"))
			}
		}
		for range 3 { // where something is kept, it is looked at once a second
			w.settle()
			w.now = w.now.Add(time.Second)
		}
		w.settle()
		for name, pod := range w.pending {
			for node := range w.nodes {
				if w.free(node, pod) >= wanted(pod) {
					t.Errorf("%s waits for %d GPUs, and %s has %d", name, wanted(pod), node, w.free(node, pod))
				}
			}
		}
		for uid := range w.pods {
			if w.pending[string(uid)] == nil {
				t.Errorf("%s is owned, and is gone", uid)
			}
		}
		owned, trying := 0, 0
		for _, s := range w.shapes {
			owned, trying = owned+s.owned, trying+s.trying
		}
		if owned != len(w.pods) || trying != w.trying || trying != 0 || len(w.known) != len(w.pods) {
			t.Errorf("%d pods are owned, %d by shape, %d are known; %d are tried, %d by shape", len(w.pods), owned,
				len(w.known), w.trying, trying)
		}
	})
}
