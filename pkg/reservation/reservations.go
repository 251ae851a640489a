package reservation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/informers"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/reserve"
	"berth.dev/berth/pkg/retry"
	"berth.dev/berth/pkg/waitlist"
)

// Reservations gives gangs that have waited long a turn each: what they need is kept to them on nodes that are the
// nearest to being free, so that smaller work cannot take it again and again. Whose turn it is and what to keep is
// decided in pkg/gang.
type Reservations struct {
	Search Search
	Agenda *gang.Agenda
	Leader *informers.Leader
	// Changed is told that the status of the gang changes.
	Changed func(gang.ID)

	// lookAt is when to look next at what to keep.
	lookAt time.Time
	// Messages say what is kept for whom, for the status of its PodGroup.
	Messages messages
	// Singles are told their starts by the same plan.
	Singles *Singles
	// Starts are the gangs that have a start, in the order of the queue.
	Starts []Start
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
	if r.Search.Holders.maxPercent == 0 || now.Before(r.lookAt) {
		return ready
	}
	first := r.lookAt.IsZero()
	r.lookAt, r.Search.backfills = retry.NextLook(now), nil
	if id, keeps := r.lookByTime(ctx, first, now); keeps {
		return id
	}
	if id, since := r.Search.Turns.Current(); id != (gang.ID{}) {
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
	for _, g := range r.Search.chosen(r.Search.waiting(first, now)) {
		cost := r.Search.cost(g)
		if cost > left && cost <= reserveRooms {
			// The next look begins with it, as those before it rest.
			return ready
		}
		left -= min(cost, left)
		kept, ok := r.Search.begin(g, first, now)
		if !ok || !r.hold(g, kept) {
			r.Search.Turns.Skip(g.ID, now)
			continue
		}
		r.Search.Turns.Begin(g.ID, kept.Pods, now)
		r.Search.Holds.Gate.Away.blocking.Clear()
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
	current, _ := r.Search.Turns.Current()
	return r.ready && current == id || r.schedule.readyFor(id)
}

// Forget ends the turn of a gang that does not wait any more, if it has it.
func (r *Reservations) Forget(id gang.ID, started bool, now time.Time) {
	if current, _ := r.Search.Turns.Current(); current == id {
		if r.Search.Holds.Gate.Away.blocked(id) {
			r.Search.Turns.Harm()
		}
		r.unreserve(id)
	}
	r.forgetByTime(id, started, now)
	r.Search.Turns.Forget(id, started, now)
	r.Search.Holds.Gate.Away.blocking.Delete(id)
}

// renew looks again at what to keep for the gang and reports whether its turn goes on.
func (r *Reservations) renew(ctx context.Context, id gang.ID, now time.Time) bool {
	g, waits := r.Search.List.ByID[id]
	if !waits {
		r.Search.Turns.End(id, now)
		return false
	}
	if r.Search.Holds.Gate.Away.blocked(id) {
		r.Search.Turns.Harm()
	}
	if _, blocked := r.Agenda.Waiting(id); !blocked {
		// It is being tried.
		return true
	}
	kept := r.renewed.kept
	state := r.Search.List.Capacity.Looks.State()
	if g != r.renewed.of || state != r.renewed.state || !now.Before(r.renewed.until) {
		var ok bool
		if kept, ok = r.Search.nearest(g, now); !ok || !r.hold(g, kept) {
			r.Search.Turns.Skip(id, now)
			r.Search.Turns.End(id, now)
			return false
		}
		r.renewed = renewal{g, state, kept, now.Add(lookAnyway)}
	}
	if !r.Search.Turns.Continue(kept.Pods, now) {
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
	r.Search.Holds.Drop(id, func(o Hold) bool { return o.Kind == forTurn })
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
	r.Search.Holds.Keep(g.ID, forTurn, kept)
	return true
}
