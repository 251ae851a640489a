package evictor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/defragment"
	"berth.dev/berth/pkg/evictor/notices"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/members"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/podgroup"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/reservation"
	"berth.dev/berth/pkg/waitlist"
)

// Moves owns what is moved so that gangs start sooner than they were told. The loop looks for moves that pay, for one
// gang at a time; the cycle of the gang's leader proves that it and the moved pods fit; then the loop moves one pod
// after the other.
type Moves struct {
	Limits defragment.Limits
	// Starts returns the gangs that are told when they start, in the order of the queue, and Waiting one that waits, nil
	// if it does not. Only the loop calls them.
	Starts  func() []reservation.Start
	Waiting func(gang.ID) *waitlist.Gang

	mu sync.Mutex
	moveSearch
	run    *moving
	budget defragment.Budget
}

// moveSearch is the search for moves.
type moveSearch struct {
	// next is when to look again, and rests until when not to look for a gang again.
	next      time.Time
	rests     map[gang.ID]time.Time
	searching bool
	found     *movePlan
}

// moving are the moves that are under way.
type moving struct {
	defragment.Moves
	id   gang.ID
	name string
	// told is when the pods were told, and sooner by how much the gang starts sooner.
	told   time.Time
	sooner time.Duration
	pods   []movedPod
}

// movedPod is one of them.
type movedPod struct {
	*v1.Pod
	// to is the node on which room is kept for what replaces it.
	to string
	// others are the pods of its controller that have nodes when it goes.
	others sets.Set[string]
}

const (
	// moveEvery is how often moves are looked for, and moveRest for how long not for the same gang.
	moveEvery, moveRest = 15 * time.Second, 2 * time.Minute
	// movePlanAge is how long a plan of moves is good for.
	movePlanAge = 30 * time.Second
	// defragmenting is the action in events.
	defragmenting = "Defragmenting"
)

// moving are the pods that have yet to move.
func (m *Moves) moving(known *members.Directory) sets.Set[gang.UID] {
	m.mu.Lock()
	defer m.mu.Unlock()
	pods := sets.New[gang.UID]()
	if m.run != nil {
		for _, pod := range m.run.rest(known) {
			pods.Insert(gang.UID(pod.UID))
		}
	}
	return pods
}

// review goes on with the moves that are under way, or looks for others.
func (m *Moves) review(e *Evictor, now time.Time, waits func(gang.ID) bool) {
	if m.Limits.Moves == 0 || !e.Notifier.Leads() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.run != nil {
		m.follow(e, m.run, waits(m.run.id), now)
		return
	}
	if m.found != nil && now.Sub(m.found.at) > movePlanAge {
		m.found = nil
	}
	if m.found != nil || m.searching || now.Before(m.next) || !m.budget.Allows(1, 0, m.Limits, now) {
		return
	}
	m.next = now.Add(moveEvery)
	maps.DeleteFunc(m.rests, func(_ gang.ID, until time.Time) bool { return !now.Before(until) })
	for _, start := range m.Starts() {
		if _, rests := m.rests[start.Gang]; rests || start.At.Sub(now) <= defragment.Takes {
			continue
		}
		if m.rests == nil {
			m.rests = map[gang.ID]time.Time{}
		}
		m.rests[start.Gang] = now.Add(moveRest)
		if r := m.request(e, start.Gang, now); r != nil {
			m.search(e, r, start.At)
			return
		}
	}
}

// request asks for moves for the gang, or is nil if none are made for it.
func (m *Moves) request(e *Evictor, id gang.ID, now time.Time) *request {
	g := m.Waiting(id)
	if g == nil || slices.Contains(g.Pods, nil) || g.Misstated != nil ||
		slices.ContainsFunc(g.Pods, podview.NeverPreempts) {
		return nil
	}
	r := &request{name: notices.MovesFor(id), id: id, of: id, priority: g.Key.Priority, moves: newMovable(e, now),
		demand: demand{need: g.Need, required: g.Levels.Required, held: e.Ledger.Nodes(id)}}
	for i, c := range g.Classes {
		r.classes = append(r.classes, requestClass{class: c.Class, role: c.Role, pod: g.Pods[i], count: c.Count})
	}
	if g.Divided() && r.divide(e, g.Levels, e.sets().Waiting(id), e.Capacity.Cluster.Nodes()) != nil {
		return nil // cycles tell it why
	}
	return r
}

// search looks for moves beside the loop, and has the gang tried that they help. The lock is held.
func (m *Moves) search(e *Evictor, r *request, start time.Time) {
	m.searching = true
	time.AfterFunc(0, func() {
		found := findMoves(e, r, start)
		m.mu.Lock()
		m.searching, m.found = false, found
		m.mu.Unlock()
		if found != nil {
			e.Resume(r.id)
		}
	})
}

// take returns what was found for the gang, once, or what to say if its moves are under way.
func (m *Moves) take(id gang.ID, now time.Time) (found *movePlan, why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.run != nil && m.run.id == id:
		return nil, m.run.describe()
	case m.run != nil || m.found == nil || m.found.request.id != id || now.Sub(m.found.at) > movePlanAge:
		return nil, ""
	}
	found, m.found = m.found, nil
	return found, ""
}

// rest are the pods that have yet to move, as they are now.
func (r *moving) rest(known *members.Directory) []*v1.Pod {
	var rest []*v1.Pod
	for _, pod := range r.pods[len(r.pods)-r.Left():] {
		if now := known.Pod(gangview.RefOf(pod.Pod)); now != nil {
			rest = append(rest, now)
		}
	}
	return rest
}

func (r *moving) describe() string {
	return fmt.Sprintf("moving %s so that it starts %s sooner; %d %s to move yet", plural.Of(len(r.pods), "pod"),
		r.sooner.Round(time.Minute), r.Left(), plural.Choose(r.Left(), "has", "have"))
}

// isForMoves says what is kept for pods that move, and for the gang for which they do.
func isForMoves(o reservation.Hold) bool { return o.Kind == reservation.ForMoves }

// begin keeps what the moved pods will need, and tells them. It returns what to say, or nothing if there are none or
// the limits do not allow it.
func (m *Moves) begin(e *Evictor, found *movePlan, pods []movedPod, now time.Time) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.run != nil || len(pods) == 0 || !m.budget.Take(len(pods), found.Lost, m.Limits, now) {
		return ""
	}
	r := found.request
	byController := map[gang.ID][]reservation.Hold{}
	for _, pod := range pods {
		if info, err := reservation.InfoOf(pod.Pod); err == nil {
			to := reservation.ReplacementsOf(pod.Pod)
			byController[to] = append(byController[to], reservation.Hold{To: to, Kind: reservation.ForMoves,
				Priority: corev1helpers.PodPriority(pod.Pod), Node: pod.to, Info: info})
		}
	}
	for to, kept := range byController {
		e.Holds.Keep(to, reservation.ForMoves, kept)
	}
	// What loses the least goes first, and shows whether all goes as planned.
	slices.SortFunc(pods, func(a, b movedPod) int {
		x, y := r.moves.of(a.Pod), r.moves.of(b.Pod)
		return cmp.Or(cmp.Compare(x.Cost(), y.Cost()), cmp.Compare(a.UID, b.UID))
	})
	m.run = &moving{Moves: defragment.NewMoves(len(pods)), id: r.id, name: r.name, told: now, sooner: found.Sooner,
		pods: pods}
	e.Notifier.Tell(r.name, found.victims, now)
	m.run.tell(e, v1.EventTypeNormal, "MovingPods", m.run.describe())
	return m.run.describe()
}

// follow does the next step of the moves. The lock is held.
func (m *Moves) follow(e *Evictor, r *moving, waits bool, now time.Time) {
	if !waits {
		e.Holds.Drop(r.id, isForMoves)
	}
	seen := defragment.Seen{Waits: waits}
	var pod *movedPod
	var replacement *v1.Pod
	if left := r.Left(); left > 0 {
		pod = &r.pods[len(r.pods)-left]
		rest := r.rest(e.Members)
		seen.Noticed = !e.Notifier.End(r.name, rest, r.told, now).After(now)
		if seen.Gone = len(rest) == 0 || rest[0].UID != pod.UID; !seen.Gone {
			pod.Pod = rest[0]
		}
		seen.Allowed = e.Sources.disruptible([]*v1.Pod{pod.Pod})
		if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
			seen.Grace = time.Duration(*s) * time.Second
		}
		replacement = pod.replacement(e)
		seen.Back = replacement != nil
	}
	switch step, why := r.Step(seen, now); step {
	case defragment.Wait:
	case defragment.Evict:
		pod.others = sets.New[string]()
		for _, other := range ofController(e, pod.Pod) {
			pod.others.Insert(string(other.UID))
		}
		r.evict(e, pod)
	case defragment.Next:
		by, on := pod.Pod, pod.to
		if replacement != nil {
			by, on = replacement, replacement.Spec.NodeName
			podsMoved.Inc()
		}
		e.Holds.Take(reservation.ReplacementsOf(pod.Pod), gang.UID(by.UID), on)
		if r.Left() == 0 {
			e.Resume(r.id)
		}
	case defragment.Done:
		m.end(e, r)
	case defragment.Stop:
		about := "moves have stopped"
		if pod != nil {
			about = "moves have stopped at pod " + pod.Namespace + "/" + pod.Name
		}
		r.tell(e, v1.EventTypeWarning, "MovesStopped",
			fmt.Sprintf("%s: %s; no pod is moved for %s", about, why, defragment.Pause))
		movesStopped.Inc()
		m.next = now.Add(defragment.Pause)
		m.end(e, r)
	}
}

// end lets go of what was kept. The lock is held.
func (m *Moves) end(e *Evictor, r *moving) {
	e.Holds.Drop(r.id, isForMoves)
	for _, pod := range r.pods {
		e.Holds.Drop(reservation.ReplacementsOf(pod.Pod), isForMoves)
	}
	m.run = nil
}

// evict evicts the pod.
func (r *moving) evict(e *Evictor, pod *movedPod) {
	profile, moment := e.Profiles.Any(), e.Sources.Loss.At(time.Now())
	name, why := r.name, fmt.Sprintf("Moved so that gang %s starts %s sooner; room for its replacement is kept on %s",
		r.id, r.sooner.Round(time.Minute), pod.to)
	e.Notifier.Write([]*v1.Pod{pod.Pod}, "Moving a pod failed", func(ctx context.Context, pod *v1.Pod) error {
		if gone, err := notices.Remove(ctx, profile, pod, name); gone || err != nil {
			return err //nolint:wrapcheck // it says which pod
		}
		profile.EventRecorder().WithLogger(klog.FromContext(ctx)).Eventf(pod, nil, v1.EventTypeNormal, "Moved", defragmenting,
			"%s%s", why, losing(pod, moment))
		return nil
	})
}

// tell records an event about the gang.
func (r *moving) tell(e *Evictor, kind, reason, note string) {
	if pg := e.Members.Group(r.id); pg != nil {
		e.Profiles.Any().EventRecorder().Eventf(podgroup.ReferenceTo(pg), nil, kind, reason, defragmenting, "%s", note)
	}
}

// replacement returns a pod of the same controller that has got a node since the pod goes, nil if there is none.
func (p *movedPod) replacement(e *Evictor) *v1.Pod {
	if p.others == nil {
		return nil
	}
	for _, other := range ofController(e, p.Pod) {
		if !p.others.Has(string(other.UID)) {
			return other
		}
	}
	return nil
}

// ofController returns the pods with nodes that have the controller of the pod.
func ofController(e *Evictor, pod *v1.Pod) []*v1.Pod {
	owner := podview.ControllerOf(pod)
	all, err := e.Members.Lister.List(labels.Everything()) // there is no index of namespaces
	if err != nil || owner == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(all), func(other *v1.Pod) bool {
		of := podview.ControllerOf(other)
		return of == nil || of.UID != owner.UID || other.Namespace != pod.Namespace || other.Spec.NodeName == ""
	})
}
