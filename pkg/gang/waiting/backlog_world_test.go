package waiting

import (
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	apitypes "k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

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
	// late is set if an event is still to wake those that wait awake.
	late  bool
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
	w.index = capacity.New(&process.Profiles{})
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
	w.Begin()
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

// event wakes the pods that the backlog does not hold; those that wait awake are woken by the next turn.
func (w *world) event() {
	w.late = true
	for name, pod := range w.pending {
		if !w.Holds(pod.UID) && !w.Awake(pod.UID) {
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
	w.index.Looks.Answer()
	for name, pod := range w.pending {
		if w.late && w.Awake(pod.UID) {
			w.woken[name] = true
		}
	}
	w.late = false
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
