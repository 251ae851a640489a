package reservation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/starttime"
)

const (
	// singlesWait is how long a pod has waited that is told its start.
	singlesWait = time.Minute
	// mostSingles are told theirs, of at most mostSingleShapes that differ in what they ask for.
	mostSingles, mostSingleShapes = 16, 4
)

// Singles tells the first pods in no gang that have waited for long when they are expected to start, by the plan of the
// gangs. The loop plans, and the writer of conditions asks.
type Singles struct {
	// Pods lists the pods that have not ended. Ours reports whether one is in no gang and for this scheduler to place,
	// and Key is its place in the queue.
	Pods func() []*v1.Pod
	Ours func(*v1.Pod) bool
	Key  func(*v1.Pod) gang.Key
	// Leads reports whether this scheduler leads: standbys learn from errors, too, and count none.
	Leads func() bool
	// Changed is told that something else is said of the pod.
	Changed func(*v1.Pod)

	board *starttime.Board
	due   time.Time
	// shapes are those that are kept live, as most pods are there again at the next look.
	shapes []capacity.ShapeKey

	mu sync.Mutex
	// looked is set once it is known what there is to say. said holds it, by pod.
	looked bool
	said   map[apitypes.UID]singleStart
}

// singleStart is what is said of a pod.
type singleStart struct {
	pod  *v1.Pod
	told starttime.Told
	text string
}

// Of returns what is said of the pod, if anything, and whether that is known.
func (s *Singles) Of(uid apitypes.UID) (text string, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said[uid].text, s.looked
}

// isDue reports whether it is time to look at single pods.
func (s *Singles) isDue(now time.Time) bool {
	if s == nil || now.Before(s.due) {
		return false
	}
	s.due = now.Add(tellEvery)
	return true
}

// waiting returns the first pods that wait for capacity.
func (s *Singles) waiting(now time.Time) []*v1.Pod {
	type queued struct {
		pod *v1.Pod
		key gang.Key
	}
	var found []queued
	for _, pod := range s.Pods() {
		if pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && len(pod.Spec.SchedulingGates) == 0 &&
			now.Sub(pod.CreationTimestamp.Time) >= singlesWait && refused(pod) && s.Ours(pod) {
			found = append(found, queued{pod, s.Key(pod)})
		}
	}
	slices.SortFunc(found, func(a, b queued) int {
		switch {
		case a.key.Less(b.key):
			return -1
		case b.key.Less(a.key):
			return 1
		}
		return cmp.Or(cmp.Compare(a.pod.Namespace, b.pod.Namespace), cmp.Compare(a.pod.Name, b.pod.Name))
	})
	first := make([]*v1.Pod, min(len(found), mostSingles))
	for i := range first {
		first[i] = found[i].pod
	}
	return first
}

// refused reports whether the pod was tried and has found no node.
func refused(pod *v1.Pod) bool {
	_, c := podutil.GetPodCondition(&pod.Status, v1.PodScheduled)
	return c != nil && c.Status == v1.ConditionFalse && c.Reason == v1.PodReasonUnschedulable
}

// acquire returns the pods with the shapes that are looked at, and has the index keep these live until the next look.
func (s *Singles) acquire(index *capacity.Index, pods []*v1.Pod) ([]*v1.Pod, []capacity.ShapeKey) {
	var kept []*v1.Pod
	var keys, live []capacity.ShapeKey
	for _, pod := range pods {
		key := index.Acquire(pod)
		live = append(live, key)
		if !slices.Contains(keys, key) && distinct(keys) == mostSingleShapes {
			continue
		}
		kept, keys = append(kept, pod), append(keys, key)
	}
	for _, key := range s.shapes {
		index.Release(key)
	}
	s.shapes = live
	return kept, keys
}

func distinct(keys []capacity.ShapeKey) int {
	n := 0
	for i, key := range keys {
		if !slices.Contains(keys[:i], key) {
			n++
		}
	}
	return n
}

// tell replaces what is said of single pods.
func (s *Singles) tell(next map[apitypes.UID]singleStart) {
	s.mu.Lock()
	before := s.said
	s.said, s.looked = next, true
	s.mu.Unlock()
	for _, uid := range slices.Sorted(maps.Keys(next)) {
		if before[uid].text != next[uid].text {
			s.Changed(next[uid].pod)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(before)) {
		if _, told := next[uid]; !told {
			s.Changed(before[uid].pod)
		}
	}
}

// silence ends what is said, as nothing is known of run times.
func (s *Singles) silence() {
	if s != nil && (!s.looked || len(s.said) > 0) {
		s.tell(nil)
	}
}

// noWay is for single pods: one that could evict others does not wait.
func noWay(*v1.Pod, int32) bool { return false }

// askFor asks for the first single pods that wait, with a row for each of their shapes.
func (s *Singles) askFor(p *timedPlan, search *Search, now time.Time) {
	pods, shapes := s.acquire(search.List.Capacity, s.waiting(now))
	for i, pod := range pods {
		row := len(p.rows)
		if first := slices.Index(shapes, shapes[i]); first < i {
			row = p.singleRows[first]
		} else {
			p.rows = append(p.rows, capacity.Row{Shape: shapes[i], MakesWay: noWay})
		}
		p.singles, p.singleRows = append(p.singles, pod), append(p.singleRows, row)
	}
}

// tellStarts tells single pods their starts, behind the gangs of the plan.
func (s *Singles) tellStarts(p *timedPlan, search *Search, reserved []starttime.Reservation, now time.Time) {
	if s.board == nil {
		s.board = starttime.NewBoard(search.Holds.Gate.Entry)
	}
	for _, said := range s.said {
		if pod := search.List.Capacity.Cluster.Pod(said.pod.UID); pod != nil {
			if at, started := podview.ScheduledAt(pod); started {
				if first, told := s.board.Started(string(pod.UID), at); told && s.Leads() {
					observe(podStartError, first, at)
				}
			}
		}
	}
	nodes := make([]starttime.Node, len(p.nodes))
	for i := range p.nodes {
		nodes[i] = p.nodes[i].Node
	}
	singles := make([]starttime.Single, len(p.singles))
	for i, pod := range p.singles {
		singles[i] = starttime.Single{Name: string(pod.UID), Shape: p.singleRows[i],
			Run:    search.Holds.Gate.Forecasts.Left(pod, now),
			Waited: now.Sub(pod.CreationTimestamp.Time), Backfills: search.Holds.Gate.AllowsBackfill(pod)}
	}
	next := map[apitypes.UID]singleStart{}
	for _, e := range s.board.PlanSingles(nodes, search.keptOf(p, reserved, now), singles, now) {
		pod := p.singles[e.Single]
		said := singleStart{pod: pod, told: e.Told}
		if before, told := s.said[pod.UID]; told && before.told == e.Told {
			said.text = before.text
		} else {
			said.text = singleText(p, &e, now)
		}
		next[pod.UID] = said
	}
	s.tell(next)
}

func singleText(p *timedPlan, e *starttime.Estimate, now time.Time) string {
	text := fmt.Sprintf("expected to start at %s, between %s and %s; number %d of the single pods that wait",
		clock(e.Told.Likely, now), clock(e.Told.Earliest, now), clock(e.Told.Latest, now), e.Single+1)
	if e.Node >= 0 {
		node := &p.nodes[e.Node]
		text += fmt.Sprintf("; waits for %s on %s, expected to end at %s", workloadOf(node.Pods[e.Last]), node.Name,
			clock(now.Add(node.Ends[e.Last].At(0.5)), now))
	}
	return text
}
