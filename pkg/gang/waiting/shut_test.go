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
