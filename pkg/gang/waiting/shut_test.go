package waiting

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
)

// keep keeps GPUs of a node for a gang, 0 for nothing any more.
func (w *world) keep(node string, n int64) {
	w.held++
	delete(w.kept, node)
	if n > 0 {
		member := st.MakePod().Name("member").UID(fmt.Sprint("member-", w.held)).Req(map[v1.ResourceName]string{
			gpus: fmt.Sprint(n)}).Obj()
		w.kept[node] = &capacity.Kept{Node: node, To: gang.ID{Name: "g"}, Pod: member}
	}
	// Where less is kept, those that were turned away for it are woken, but for those of the backlog.
	w.event()
}

// AgainstPod is what is kept and the pod may not use.
func (w *world) AgainstPod(pod *v1.Pod) []*capacity.Kept {
	if w.mayEnter(pod) {
		return nil
	}
	return slices.Collect(maps.Values(w.kept))
}

// State counts how often something else was kept.
func (w *world) State() any { return w.held }

func TestPodsWaitForWhatIsKeptAndEnterOnceTheyMay(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.node("a", 2)
	w.keep("a", 2)
	for _, name := range []string{"long-1", "long-2", "short"} {
		w.now = w.now.Add(time.Second)
		w.pod(name, 1, 0)
	}
	w.settle()
	w.tries = 0
	w.node("full", 0)
	w.now = w.now.Add(lookAnyway)
	if w.settle(); w.tries > 0 {
		t.Errorf("%d pods were tried for room that is kept", w.tries)
	}
	w.mayEnter = func(pod *v1.Pod) bool { return pod.Name == "short" }
	w.now = w.now.Add(lookAnyway)
	if w.settle(); w.placed["short"] == nil || w.tries != 1 {
		t.Errorf("of %d pods that were tried, those have a node: %v", w.tries, w.placed)
	}
	w.end("short")
	w.keep("a", 1)
	w.now = w.now.Add(time.Second)
	if w.settle(); w.placed["long-1"] == nil || w.tries != 2 {
		t.Errorf("when one GPU is kept no more, %d pods are tried, and those have a node: %v", w.tries-1, w.placed)
	}
}

func TestALongQueueIsLookedAtInTurn(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.node("a", 2)
	w.keep("a", 2)
	const pods = 3*mostLooks + 100
	for i := range pods {
		w.now = w.now.Add(time.Millisecond)
		w.pod(fmt.Sprintf("pod-%04d", i), 1, 0)
	}
	w.settle()
	last := fmt.Sprintf("pod-%04d", pods-1)
	w.mayEnter = func(pod *v1.Pod) bool { return pod.Name == last }
	w.now = w.now.Add(lookAnyway)
	for range 4 {
		w.settle()
		w.now = w.now.Add(time.Second)
	}
	if w.settle(); w.placed[last] == nil {
		t.Error("the last pod of a long queue may enter, and has not")
	}
}
