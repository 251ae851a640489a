package waiting

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"pgregory.net/rapid"
)

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

func TestAPodThatMayEvictOthersComesFirstInItsTurn(t *testing.T) {
	t.Parallel()
	w := newFullWorld()
	w.pod("less", 1, 4)
	w.settle()
	w.node("c", 1)
	w.pod("lesser", 1, 3)
	w.settle()
	if w.placed["waits"] == nil || w.placed["lesser"] != nil {
		t.Fatal("the room did not go to the first")
	}
	w.end("waits")
	w.try("lesser")
	w.pod("waits", 1, 5)
	w.try("waits")
	w.look()
	w.node("d", 1)
	if diff := cmp.Diff([]string{"waits"}, w.look()); diff != "" {
		t.Errorf("pods to try when a node came (-want +got):\n%s", diff)
	}
}

func TestWhatCameFreeSinceAPodFailedIsForWhoComesFirst(t *testing.T) {
	t.Parallel()
	w := newFullWorld()
	w.pod("first", 1, 9)
	w.try("first")
	w.node("b", 1)
	if diff := cmp.Diff([]string{"first"}, w.look()); diff != "" {
		t.Fatalf("pods to try when a node came after the first had failed (-want +got):\n%s", diff)
	}
	// It does not get the node, which none but the account takes for free.
	w.Begin()
	w.Failed(w.pending["first"], keyOf(w.pending["first"]))
	if diff := cmp.Diff([]string{"waits"}, w.look()); diff != "" {
		t.Errorf("pods to try when the first has failed again (-want +got):\n%s", diff)
	}
}

// A node that comes while a pod is tried is for that pod, also where gangs are being looked at when it fails.
func TestWhatCameFreeWhileAPodWasTriedIsForWhoComesFirst(t *testing.T) {
	t.Parallel()
	w := newFullWorld()
	w.pod("first", 1, 9)
	w.Begin()
	w.node("b", 2)
	w.index.Looks.Refresh()
	w.Failed(w.pending["first"], keyOf(w.pending["first"]))
	if diff := cmp.Diff([]string{"first", "waits"}, w.look()); diff != "" {
		t.Errorf("pods to try when a node came (-want +got):\n%s", diff)
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
