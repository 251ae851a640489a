package advise

import (
	"cmp"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/gang"
)

// makeWay asks the scheduler's preemption which pods to move for a unit: in memory, the unit has a higher priority than
// the pods that may move, and a lower one than all others, which include stay and its own gang. It returns the evicted
// pods and the nodes of the unit if the unit started, else nothing.
func (s *search) makeWay(u *unit, stay map[key]bool) (evicted []*runningPod, on []string, err error) {
	s.say("looking for pods whose eviction would start %s", u)
	objects := make([]runtime.Object, 0, len(s.settled)+len(u.Pods))
	for _, obj := range s.settled {
		if pod, ok := obj.(*v1.Pod); ok && (!s.mayMove(pod, u) || stay[keyOf(pod)]) {
			obj = withPriority(pod, math.MaxInt32)
		}
		objects = append(objects, obj)
	}
	starting := u.Pods
	if u.Kind == KindPod {
		starting = u.Pods[:1] // one of equal pods
	}
	for _, pod := range starting {
		objects = append(objects, withPriority(s.devices.inPlaceOfClaim(pod), math.MaxInt32-1))
	}
	err = s.try(objects, func(w *world) error {
		if !w.rest(func() bool { return len(w.placed(u)) >= u.Needs }) {
			return nil
		}
		for name := range w.Evicted() {
			if pod := s.running[name]; pod != nil {
				evicted = append(evicted, pod)
			}
		}
		for _, p := range w.placed(u) {
			on = append(on, p.Node)
		}
		return nil
	})
	slices.SortFunc(evicted, compareLoss)
	slices.Sort(on)
	return evicted, slices.Compact(on), err
}

// mayMove reports whether a pod may be moved for the unit.
func (s *search) mayMove(pod *v1.Pod, u *unit) bool {
	of := s.running[keyOf(pod)]
	return of != nil && of.fixed == "" && !of.stuck && (of.gang == gang.ID{} || of.gang != u.of.gang)
}

// withPriority is a copy of a pod with that priority, which may preempt.
func withPriority(pod *v1.Pod, priority int32) *v1.Pod {
	out := *pod
	out.Spec.Priority, out.Spec.PreemptionPolicy, out.Status.NominatedNodeName = ptr.To(priority), nil, ""
	return &out
}

// compareLoss orders pods by priority, then by the work that they lose, then the younger ones first.
func compareLoss(a, b *runningPod) int {
	return cmp.Or(cmp.Compare(corev1helpers.PodPriority(a.Pod), corev1helpers.PodPriority(b.Pod)),
		cmp.Compare(a.lost, b.lost), b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// move are pods that are evicted at the same time: one pod, or members of a gang.
type move struct {
	Unit
	pods []*runningPod
}

// movesOf are the moves of pods, in their order.
func movesOf(pods []*runningPod) (moves []*move) {
	gangs := map[gang.ID]*move{}
	for _, pod := range pods {
		if m := gangs[pod.gang]; m != nil {
			m.pods = append(m.pods, pod)
			continue
		}
		m := &move{Unit: Unit{KindPod, pod.Namespace, pod.Name}, pods: []*runningPod{pod}}
		if pod.gang != (gang.ID{}) {
			m.Unit = Unit{KindPodGroup, pod.gang.Namespace, pod.gang.Name}
			gangs[pod.gang] = m
		}
		moves = append(moves, m)
	}
	return moves
}

func (m *move) names() []key {
	var names []key
	for _, pod := range m.pods {
		names = append(names, keyOf(pod.Pod))
	}
	return names
}

// in is the result of the move, with the new nodes.
func (m *move) in(w *world) Move {
	out := Move{Unit: m.Unit, Priority: math.MinInt32}
	for _, pod := range m.pods {
		out.Priority = max(out.Priority, corev1helpers.PodPriority(pod.Pod))
		out.Pods = append(out.Pods, MovedPod{Name: pod.Name, From: pod.Spec.NodeName, To: w.node(keyOf(pod.Pod)),
			LostGPUMinutes: float64(pod.lost) / 1000})
	}
	return out
}

// placed are the pods of a unit that have a node.
func (w *world) placed(u *unit) (placed []Placement) {
	for _, pod := range u.Pods {
		if node := w.node(keyOf(pod)); node != "" {
			placed = append(placed, Placement{pod.Namespace, pod.Name, node})
		}
	}
	return placed
}
