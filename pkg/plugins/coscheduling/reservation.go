package coscheduling

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/plural"
)

const (
	// reservePlans is for how many gangs at a time it is looked at what to keep: half of them are the first in the order of the queue,
	// the others those that have waited for a look for the longest time.
	reservePlans = 16
	// reserveRooms bounds how many rooms one look compares, each of a node for a shape. A gang of more shapes than that has no turn.
	reserveRooms = 250_000
)

// reservations gives gangs that have waited long a turn each: what they need is promised to them on nodes that are the
// nearest to being free, so that smaller work cannot take it again and again. Whose turn it is and what to keep is
// decided in pkg/gang.
type reservations struct {
	turns *gang.ReserveTurns
	// watch finds nodes that are kept in vain.
	watch gang.ReserveWatch
	// backfills holds, for one look, which pods between two priorities may backfill.
	backfills map[[2]int32]map[apitypes.UID]bool
	// lookAt is when to look next at what to keep.
	lookAt time.Time
	// words say what is kept for whom, for the status of its PodGroup.
	words reservedWords
	// ready is set if the gang whose turn it is fits on what is kept, once the pods have left that make way for it.
	ready bool
}

// reserve brings what is promised to the gang whose turn it is in line with the cluster, and gives the next turn to the
// first gang that has waited long enough and would fit if the cluster was empty.
func (w *waker) reserve(ctx context.Context, now time.Time) {
	r := &w.reservations
	if w.settings.holders.maxPercent == 0 || now.Before(r.lookAt) {
		return
	}
	first := r.lookAt.IsZero()
	r.lookAt, r.backfills = nextLook(now), nil
	if id, since := r.turns.Current(); id != (gang.ID{}) {
		if w.renew(ctx, id, now) {
			if w.leader.Leading() { // a standby that has taken it up at its start does not follow it
				reservationAge.Set(now.Sub(since).Seconds())
			}
			return
		}
		w.unreserve(id)
	}
	reservationAge.Set(0)
	var next []*waitingGang
	for id, g := range w.waiting {
		patient := !g.Fresh && now.Sub(g.Since) >= w.settings.patience
		if (patient || first && w.keptBefore(id) != nil) && r.turns.MayBegin(id, now) &&
			w.settings.holders.percent(id.Namespace, g.Key.Priority) > 0 {
			next = append(next, g)
		}
	}
	left := reserveRooms
	for _, g := range w.chosen(next) {
		cost := w.reserveCost(g)
		if cost > left && cost <= reserveRooms {
			// The next look begins with it, as those before it rest.
			return
		}
		left -= min(cost, left)
		kept, ok := w.begin(g, first, now)
		if !ok || !w.promise(g, kept) {
			r.turns.Skip(g.ID, now)
			continue
		}
		r.turns.Begin(g.ID, kept.Pods, now)
		w.promises.harmed.Store(false)
		w.tellReserved(g.ID, kept)
		klog.FromContext(ctx).V(2).Info("Reserving nodes for a gang", "gang", g.ID, "nodes", len(kept.Places), "podsToEnd", kept.Pods)
		return
	}
}

// keptBefore returns the nodes that a scheduler before this one kept for the gang to its end, nil if it kept none.
func (w *waker) keptBefore(id gang.ID) map[string]bool {
	pg := w.groups.get(id)
	if pg == nil || !meta.IsStatusConditionTrue(pg.Status.Conditions, schedulingv1alpha1.PodGroupReserved) {
		return nil
	}
	nodes := map[string]bool{}
	for _, name := range pg.Status.ReservedNodes {
		nodes[name] = true
	}
	return nodes
}

// begin returns what to keep for a gang whose turn begins. What was kept for it before this scheduler has started stays.
func (w *waker) begin(g *waitingGang, first bool, now time.Time) (gang.Reservation, bool) {
	if before := w.keptBefore(g.ID); first && len(before) > 0 {
		if kept, ok := w.nearestAmong(g, before, now); ok {
			return kept, true
		}
	}
	return w.nearest(g, now)
}

// chosen returns for which of the gangs to look now. Gangs for which nothing can be kept rest for a minute; if there are very many,
// those behind them would never be looked at if the order of the queue alone counted.
func (w *waker) chosen(next []*waitingGang) []*waitingGang {
	slices.SortFunc(next, firstByKey)
	if len(next) <= reservePlans {
		return next
	}
	since := func(g *waitingGang) time.Time {
		if rested := w.reservations.turns.Rested(g.ID); rested.After(g.Since) {
			return rested
		}
		return g.Since
	}
	others := next[reservePlans/2:]
	slices.SortStableFunc(others, func(a, b *waitingGang) int { return since(a).Compare(since(b)) })
	return next[:reservePlans]
}

// renew looks again at what to keep for the gang and reports whether its turn goes on.
func (w *waker) renew(ctx context.Context, id gang.ID, now time.Time) bool {
	g, waits := w.waiting[id]
	if !waits {
		w.reservations.turns.End(id, now)
		return false
	}
	if w.promises.harmed.Swap(false) {
		w.reservations.turns.Harm()
	}
	if _, blocked := w.ledger.Waiting(id); !blocked {
		// It is being tried.
		return true
	}
	kept, ok := w.nearest(g, now)
	if !ok || !w.promise(g, kept) {
		w.reservations.turns.Skip(id, now)
		w.reservations.turns.End(id, now)
		return false
	}
	if !w.reservations.turns.Continue(kept.Pods, now) {
		klog.FromContext(ctx).V(2).Info("Ended the reservation of a gang without progress", "gang", id, "podsToEnd", kept.Pods)
		return false
	}
	if kept.Ready && !w.reservations.ready {
		w.rounds.Touch(id, now)
	}
	w.reservations.ready = kept.Ready
	w.tellReserved(id, kept)
	return true
}

// unreserve ends what is promised to the gang for its turn.
func (w *waker) unreserve(id gang.ID) {
	w.reservations.ready = false
	if w.reservations.words.set(id, "", nil) {
		w.status.Enqueue(id)
	}
	w.promises.drop(id, func(o promise) bool { return o.kind == forTurn })
}

// tellReserved has the status of the gang's PodGroup say what is kept for it, and what that lacks.
func (w *waker) tellReserved(id gang.ID, kept gang.Reservation) {
	nodes := map[string]bool{}
	for _, place := range kept.Places {
		nodes[place.Node] = true
	}
	words := fmt.Sprintf("%s reserved, on which the gang fits", plural.Of(len(nodes), "node"))
	if !kept.Ready {
		words = fmt.Sprintf("%s reserved, on which at least %s %s to end first", plural.Of(len(nodes), "node"), plural.Of(kept.Pods, "pod"), plural.Choose(kept.Pods, "has", "have"))
	}
	if w.reservations.words.set(id, words, slices.Sorted(maps.Keys(nodes))) {
		w.status.Enqueue(id)
	}
}

// reservedWords are said of the gang whose turn it is. The waker sets them, and the writer of statuses reads them.
type reservedWords struct {
	mu    sync.Mutex
	id    gang.ID
	words string
	nodes []string
}

// set reports whether that is news. Empty words end what was said of the gang.
func (r *reservedWords) set(id gang.ID, words string, nodes []string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if words == "" && r.id != id || r.id == id && r.words == words && slices.Equal(r.nodes, nodes) {
		return false
	}
	r.id, r.words, r.nodes = id, words, nodes
	if words == "" {
		r.id = gang.ID{}
	}
	return true
}

// of returns what is said of the gang, and its nodes by name; nothing if it is not its turn.
func (r *reservedWords) of(id gang.ID) (words string, nodes []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.id != id {
		return "", nil
	}
	return r.words, r.nodes
}

// promise makes what is promised to the gang for its turn that of the reservation.
func (w *waker) promise(g *waitingGang, r gang.Reservation) bool {
	var kept []promise
	for _, place := range r.Places {
		info, err := infoOf(g.pods[place.Class])
		if err != nil {
			return false
		}
		for range place.Count {
			kept = append(kept, promise{to: g.ID, kind: forTurn, priority: g.Key.Priority, node: place.Node, info: info})
		}
	}
	w.promises.keep(g.ID, forTurn, kept)
	return true
}

// reserveCost returns how many rooms it takes to find out what to keep for the gang.
func (w *waker) reserveCost(g *waitingGang) int {
	shapes := map[shapeKey]bool{}
	for _, need := range g.shapes {
		shapes[need.shape] = true
	}
	return len(shapes) * w.headroom.size()
}

// nearest returns what to keep for the gang. Pods that the gang may evict count as gone.
func (w *waker) nearest(g *waitingGang, now time.Time) (gang.Reservation, bool) {
	return w.nearestAmong(g, nil, now)
}

// nearestAmong returns what to keep for the gang on some nodes, of all if it is not said which.
func (w *waker) nearestAmong(g *waitingGang, some map[string]bool, now time.Time) (gang.Reservation, bool) {
	emptied := w.headroom.cordonedFor(g.ID)
	if slices.Contains(g.pods, nil) || w.reserveCost(g) > reserveRooms || len(emptied) == 0 && !w.mayFit(g, true) {
		return gang.Reservation{}, false
	}
	p := &gang.ReserveProblem{Need: g.Need, MaxNodes: w.headroom.size() * w.settings.holders.percent(g.ID.Namespace, g.Key.Priority) / 100}
	held := map[string]bool{}
	for _, o := range w.promises.to(g.ID) {
		held[o.node] = true
	}
	// Members with volumes of their own are a class each. What fits where is the same for all that ask for the same.
	var shapes []shapeKey
	at := map[shapeKey]int{}
	for i, c := range g.Classes {
		shape := g.shapes[i].shape
		if _, known := at[shape]; !known {
			at[shape] = len(shapes)
			shapes = append(shapes, shape)
		}
		p.Classes = append(p.Classes, gang.ReserveClass{Role: c.Role, Count: c.Count, Shape: at[shape]})
	}
	preempts := !slices.ContainsFunc(g.pods, neverPreempts)
	least := int32(math.MinInt32)
	if preempts {
		least = g.Key.Priority
	}
	// Who may backfill is found out first: the account must not be locked for so long.
	backfills := w.backfilling(least, g.Key.Priority)
	p.Nodes = w.headroom.rooms(shapes, g.required, emptied, func(pod *v1.Pod, priority int32) bool {
		return (preempts && priority < g.Key.Priority) || backfills[pod.UID]
	})
	if len(emptied) > 0 {
		// It is enough for the gang, and the pods that leave it need places elsewhere.
		p.NoSpare, held = true, emptied
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		n.Kept = held[n.Name]
		if some != nil && !some[n.Name] {
			n.Domain = -1
		}
		for r := range n.Rooms {
			if emptied[n.Name] {
				n.Rooms[r].Pods = min(n.Rooms[r].Pods, 1)
			}
		}
	}
	if id, _ := w.reservations.turns.Current(); id == g.ID {
		w.reservations.watch.Look(p.Nodes, now)
	} else {
		w.reservations.watch.Mark(p.Nodes)
	}
	return gang.Reserve(p)
}

// backfilling returns the bound pods of these priorities and those between them that may backfill.
func (w *waker) backfilling(least, most int32) map[apitypes.UID]bool {
	r := &w.reservations
	key := [2]int32{least, most}
	found, known := r.backfills[key]
	if known {
		return found
	}
	found = map[apitypes.UID]bool{}
	for _, pod := range w.headroom.podsBetween(least, most) {
		if w.allowsBackfill(pod) {
			found[pod.UID] = true
		}
	}
	if r.backfills == nil {
		r.backfills = map[[2]int32]map[apitypes.UID]bool{}
	}
	r.backfills[key] = found
	return found
}
