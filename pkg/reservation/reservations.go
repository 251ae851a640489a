package reservation

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/informers"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/reserve"
	"berth.dev/berth/pkg/retry"
	"berth.dev/berth/pkg/waitlist"
)

const (
	// reservePlans is for how many gangs at a time it is looked at what to keep: half of them are the first in the
	// order of the queue, the others those that have waited for a look for the longest time.
	reservePlans = 16
	// reserveRooms bounds how many rooms one look compares, each of a node for a shape. A gang of more shapes than that
	// has no turn.
	reserveRooms = 250_000
)

// Reservations gives gangs that have waited long a turn each: what they need is kept to them on nodes that are the
// nearest to being free, so that smaller work cannot take it again and again. Whose turn it is and what to keep is
// decided in pkg/gang.
type Reservations struct {
	// Holders says for whose gangs something is kept, after how long a gang has to have waited for that.
	Holders Holders
	After   time.Duration
	Agenda  *gang.Agenda
	List    *waitlist.List
	Holds   *Holds
	Leader  *informers.Leader
	// Changed is told that the status of the gang changes.
	Changed func(gang.ID)

	Turns *reserve.Turns
	// watch finds nodes on which no pod ends while they are kept.
	watch reserve.Watch
	// backfills holds, for one look, which pods between two priorities may backfill.
	backfills map[[2]int32]map[apitypes.UID]bool
	// lookAt is when to look next at what to keep.
	lookAt time.Time
	// Messages say what is kept for whom, for the status of its PodGroup.
	Messages messages
	// Singles are told their starts by the same plan.
	Singles *Singles
	// schedule is that by time.
	schedule schedule
	// renewed is what was found when it was last looked at what to keep for the gang whose turn it is.
	renewed renewal
	// ready is set if the gang whose turn it is fits on what is kept, once the pods have left that make way for it.
	ready bool
}

// renewal is what to keep for a gang. It is the same until the account of free capacity changes, or until that time:
// who may backfill is not in the account.
type renewal struct {
	of    *waitlist.Gang
	state uint64
	kept  reserve.Choice
	until time.Time
}

// Look brings what is kept to the gang whose turn it is in line with the cluster, and gives the next turn to the first
// gang that has waited long enough and would fit if the cluster was empty. It returns the gang that has become ready to
// start, if one has.
func (r *Reservations) Look(ctx context.Context, now time.Time) (ready gang.ID) {
	if r.Holders.maxPercent == 0 || now.Before(r.lookAt) {
		return ready
	}
	first := r.lookAt.IsZero()
	r.lookAt, r.backfills = retry.NextLook(now), nil
	if id, keeps := r.lookByTime(ctx, first, now); keeps {
		return id
	}
	if id, since := r.Turns.Current(); id != (gang.ID{}) {
		wasReady := r.ready
		if r.renew(ctx, id, now) {
			if r.Leader.Leading() { // a standby that has taken it up at its start does not follow it
				age.Set(now.Sub(since).Seconds())
			}
			if r.ready && !wasReady {
				return id
			}
			return ready
		}
		r.unreserve(id)
	}
	age.Set(0)
	left := reserveRooms
	for _, g := range r.chosen(r.waiting(first, now)) {
		cost := r.cost(g)
		if cost > left && cost <= reserveRooms {
			// The next look begins with it, as those before it rest.
			return ready
		}
		left -= min(cost, left)
		kept, ok := r.begin(g, first, now)
		if !ok || !r.hold(g, kept) {
			r.Turns.Skip(g.ID, now)
			continue
		}
		r.Turns.Begin(g.ID, kept.Pods, now)
		r.Holds.blocking.Clear()
		r.tell(g.ID, kept)
		klog.FromContext(ctx).V(2).Info("Reserving nodes for a gang", "gang", g.ID, "nodes", len(kept.Places), "podsToEnd",
			kept.Pods)
		return ready
	}
	return ready
}

// ReadyFor reports whether the gang has the turn and fits on what is kept for it, once the pods have left that make way
// for it.
func (r *Reservations) ReadyFor(id gang.ID) bool {
	current, _ := r.Turns.Current()
	return r.ready && current == id || r.schedule.readyFor(id)
}

// waiting returns the gangs that may have the next turn.
func (r *Reservations) waiting(first bool, now time.Time) []*waitlist.Gang {
	var next []*waitlist.Gang
	for id, g := range r.List.ByID {
		patient := !g.Fresh && now.Sub(g.Since) >= r.After
		if (patient || first && r.keptBefore(id) != nil) && r.Turns.MayBegin(id, now) &&
			r.Holders.percent(id.Namespace, g.Key.Priority) > 0 {
			next = append(next, g)
		}
	}
	return next
}

// Forget ends the turn of a gang that does not wait any more, if it has it.
func (r *Reservations) Forget(id gang.ID, started bool, now time.Time) {
	if current, _ := r.Turns.Current(); current == id {
		if r.Holds.blocked(id) {
			r.Turns.Harm()
		}
		r.unreserve(id)
	}
	r.forgetByTime(id, started, now)
	r.Turns.Forget(id, started, now)
	r.Holds.blocking.Delete(id)
}

// keptBefore returns the nodes that a scheduler before this one kept for the gang to its end, nil if it kept none.
func (r *Reservations) keptBefore(id gang.ID) map[string]bool {
	pg := r.List.PodGroup(id)
	if pg == nil || !meta.IsStatusConditionTrue(pg.Status.Conditions, schedulingv1alpha1.PodGroupReserved) {
		return nil
	}
	nodes := map[string]bool{}
	for _, name := range pg.Status.ReservedNodes {
		nodes[name] = true
	}
	return nodes
}

// begin returns what to keep for a gang whose turn begins. What was kept for it before this scheduler has started
// stays.
func (r *Reservations) begin(g *waitlist.Gang, first bool, now time.Time) (reserve.Choice, bool) {
	if before := r.keptBefore(g.ID); first && len(before) > 0 {
		if kept, ok := r.nearestAmong(g, before, now); ok {
			return kept, true
		}
	}
	return r.nearest(g, now)
}

// chosen returns for which of the gangs to look now. Gangs for which nothing can be kept rest for a minute; if there
// are very many, those behind them would never be looked at if the order of the queue alone counted.
func (r *Reservations) chosen(next []*waitlist.Gang) []*waitlist.Gang {
	slices.SortFunc(next, waitlist.FirstByKey)
	if len(next) <= reservePlans {
		return next
	}
	since := func(g *waitlist.Gang) time.Time {
		if rested := r.Turns.Rested(g.ID); rested.After(g.Since) {
			return rested
		}
		return g.Since
	}
	others := next[reservePlans/2:]
	slices.SortStableFunc(others, func(a, b *waitlist.Gang) int { return since(a).Compare(since(b)) })
	return next[:reservePlans]
}

// renew looks again at what to keep for the gang and reports whether its turn goes on.
func (r *Reservations) renew(ctx context.Context, id gang.ID, now time.Time) bool {
	g, waits := r.List.ByID[id]
	if !waits {
		r.Turns.End(id, now)
		return false
	}
	if r.Holds.blocked(id) {
		r.Turns.Harm()
	}
	if _, blocked := r.Agenda.Waiting(id); !blocked {
		// It is being tried.
		return true
	}
	kept := r.renewed.kept
	state := r.List.Capacity.Looks.State()
	if g != r.renewed.of || state != r.renewed.state || !now.Before(r.renewed.until) {
		var ok bool
		if kept, ok = r.nearest(g, now); !ok || !r.hold(g, kept) {
			r.Turns.Skip(id, now)
			r.Turns.End(id, now)
			return false
		}
		r.renewed = renewal{g, state, kept, now.Add(lookAnyway)}
	}
	if !r.Turns.Continue(kept.Pods, now) {
		klog.FromContext(ctx).V(2).Info("Ended the reservation of a gang without progress", "gang", id, "podsToEnd",
			kept.Pods)
		return false
	}
	r.ready = kept.Ready
	r.tell(id, kept)
	return true
}

// unreserve ends what is kept to the gang for its turn.
func (r *Reservations) unreserve(id gang.ID) {
	r.ready = false
	if r.Messages.set(id, said{}) {
		r.Changed(id)
	}
	r.Holds.Drop(id, func(o Hold) bool { return o.Kind == forTurn })
}

// tell has the status of the gang's PodGroup say what is kept for it, and what that lacks.
func (r *Reservations) tell(id gang.ID, kept reserve.Choice) {
	nodes := map[string]bool{}
	for _, place := range kept.Places {
		nodes[place.Node] = true
	}
	message := fmt.Sprintf("%s reserved, on which the gang fits", plural.Of(len(nodes), "node"))
	if !kept.Ready {
		message = fmt.Sprintf("%s reserved, on which at least %s %s to end first", plural.Of(len(nodes), "node"),
			plural.Of(kept.Pods, "pod"), plural.Choose(kept.Pods, "has", "have"))
	}
	if r.Messages.set(id, said{message: message, nodes: slices.Sorted(maps.Keys(nodes))}) {
		r.Changed(id)
	}
}

// hold makes what is kept to the gang for its turn that of the reservation.
func (r *Reservations) hold(g *waitlist.Gang, reserved reserve.Choice) bool {
	var kept []Hold
	infos := make([]fwk.PodInfo, len(g.Pods))
	for _, place := range reserved.Places {
		if infos[place.Class] == nil {
			var err error
			if infos[place.Class], err = InfoOf(g.Pods[place.Class]); err != nil {
				return false
			}
		}
		info := infos[place.Class]
		for range place.Count {
			kept = append(kept, Hold{To: g.ID, Kind: forTurn, Priority: g.Key.Priority, Node: place.Node, Info: info})
		}
	}
	r.Holds.Keep(g.ID, forTurn, kept)
	return true
}

// cost returns how many rooms it takes to find out what to keep for the gang.
func (r *Reservations) cost(g *waitlist.Gang) int {
	shapes := map[capacity.ShapeKey]bool{}
	for _, need := range g.Shapes {
		shapes[need.Shape] = true
	}
	return len(shapes) * r.List.Capacity.Cluster.Size()
}

// nearest returns what to keep for the gang. Pods that the gang may evict count as gone.
func (r *Reservations) nearest(g *waitlist.Gang, now time.Time) (reserve.Choice, bool) {
	return r.nearestAmong(g, nil, now)
}

// nearestAmong returns what to keep for the gang on some nodes, of all if it is not said which.
func (r *Reservations) nearestAmong(g *waitlist.Gang, some map[string]bool, now time.Time) (reserve.Choice, bool) {
	emptied := r.List.Capacity.Cluster.CordonedFor(g.ID)
	if slices.Contains(g.Pods, nil) || r.cost(g) > reserveRooms || len(emptied) == 0 && !r.List.MayFit(g, true) {
		return reserve.Choice{}, false
	}
	p := &reserve.Problem{Need: g.Need,
		MaxNodes: r.List.Capacity.Cluster.Size() * r.Holders.percent(g.ID.Namespace, g.Key.Priority) / 100}
	held := map[string]bool{}
	for _, o := range r.Holds.To(g.ID) {
		held[o.Node] = true
	}
	// Members with volumes of their own are a class each. What fits where is the same for all that ask for the same.
	var shapes []capacity.ShapeKey
	at := map[capacity.ShapeKey]int{}
	for i, c := range g.Classes {
		shape := g.Shapes[i].Shape
		if _, known := at[shape]; !known {
			at[shape] = len(shapes)
			shapes = append(shapes, shape)
		}
		p.Classes = append(p.Classes, reserve.Class{Role: c.Role, Count: c.Count, Shape: at[shape]})
	}
	preempts, least := r.evicts(g)
	// Who may backfill is found out first: the account must not be locked for so long.
	backfills := r.backfilling(least, g.Key.Priority)
	p.Nodes = r.List.Capacity.Rooms(shapes, g.Required, emptied, func(pod *v1.Pod, priority int32) bool {
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
	if id, _ := r.Turns.Current(); id == g.ID {
		r.watch.Look(p.Nodes, now)
	} else {
		r.watch.Mark(p.Nodes)
	}
	return reserve.Choose(p)
}

// evicts reports whether the gang may evict pods of lower priority, and from which priority on pods that backfill make
// way.
func (r *Reservations) evicts(g *waitlist.Gang) (preempts bool, least int32) {
	if slices.ContainsFunc(g.Pods, podview.NeverPreempts) {
		return false, math.MinInt32
	}
	return true, g.Key.Priority
}

// backfilling returns the bound pods of these priorities and those between them that may backfill.
func (r *Reservations) backfilling(least, most int32) map[apitypes.UID]bool {
	key := [2]int32{least, most}
	found, known := r.backfills[key]
	if known {
		return found
	}
	found = map[apitypes.UID]bool{}
	for _, pod := range r.List.Capacity.Cluster.PodsBetween(least, most) {
		if r.Holds.AllowsBackfill(pod) {
			found[pod.UID] = true
		}
	}
	if r.backfills == nil {
		r.backfills = map[[2]int32]map[apitypes.UID]bool{}
	}
	r.backfills[key] = found
	return found
}
