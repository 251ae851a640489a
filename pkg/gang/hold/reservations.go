package hold

import (
	"context"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/starts"
	"berth.dev/berth/pkg/gang/status"
	"berth.dev/berth/pkg/gang/waiting"
	"berth.dev/berth/pkg/gang/work"
	"berth.dev/berth/pkg/process/informers"
)

// lookAnyway is how often it is looked at what to keep while nothing has changed but the time.
const lookAnyway = 10 * time.Second

// Reservations keeps what one gang needs that has waited long: the nodes on which it starts the soonest, or those that
// are the nearest to being free, so that smaller work cannot take them again and again. For whom and what to keep is
// decided in pkg/gang/starts.
type Reservations struct {
	Search   Search
	Election informers.Election
	Agenda   *gang.Agenda
	// Status writes what is said of gangs.
	Status *status.Controller

	// lookAt is when to look next at what to keep.
	lookAt  time.Time
	current current
}

// current is what is kept for the gang whose turn it is.
type current struct {
	// of, state and until say how long kept is what to keep: it is the same until the gang or the account of free capacity
	// changes, or until that time. Who may backfill is not in the account.
	of    *waiting.Gang
	state uint64
	until time.Time
	kept  starts.Choice
	// waitsFor is the pod that has to end last, nil if none has to. Once outlived is set, it did not by its word.
	waitsFor *v1.Pod
	outlived bool
	// told is the start that was told first, zero if none was.
	told time.Time
}

// Look brings what is kept for the gang whose turn it is in line with the cluster, and gives the next turn to the first
// gang that has waited long enough and would fit if the cluster was empty. It returns the gang that has become ready to
// start, if one has.
func (r *Reservations) Look(ctx context.Context, now time.Time) (ready gang.ID) {
	if r.Search.Holders.byTime == 0 || now.Before(r.lookAt) {
		return ready
	}
	// Another scheduler may keep something: the one before this process, or the one that leads.
	follows := r.lookAt.IsZero() || !r.Election.Leads()
	r.lookAt, r.Search.backfills = waiting.NextLook(now), nil
	id, since := r.Search.Turns.Current()
	keptBefore := func(id gang.ID) bool { return r.Search.keptBefore(id) != nil }
	if follows && id != (gang.ID{}) && !keptBefore(id) &&
		slices.ContainsFunc(slices.Collect(maps.Keys(r.Search.List.ByID)), keptBefore) {
		r.Search.Turns.End(id)
		r.unreserve(id)
		id = gang.ID{}
	}
	if id != (gang.ID{}) {
		wasReady := r.current.kept.Ready
		if r.renew(ctx, id, now) {
			if r.Election.Leads() {
				age.Set(now.Sub(since).Seconds())
			}
			if r.current.kept.Ready && !wasReady {
				return id
			}
			return ready
		}
		r.unreserve(id)
	}
	age.Set(0)
	r.next(ctx, follows, now)
	return ready
}

// next gives the turn to the first gang that may have it.
func (r *Reservations) next(ctx context.Context, follows bool, now time.Time) {
	left := reserveRooms
	for _, g := range r.Search.chosen(r.Search.waiting(follows, now)) {
		cost := r.Search.cost(g)
		if cost > left && cost <= reserveRooms {
			// The next look begins with it, as those before it rest.
			return
		}
		left -= min(cost, left)
		kept, told, ok := r.Search.begin(g, follows, now)
		if !ok || !r.hold(g, &kept) {
			r.Search.Turns.Skip(g.ID, now)
			continue
		}
		r.Search.Turns.Begin(g.ID, &kept, told, now)
		r.current = current{kept: kept, told: told}
		r.report(g.ID, now)
		klog.FromContext(ctx).V(2).Info("Reserving nodes for a gang", "gang", g.ID, "nodes", len(kept.Places),
			"podsToEnd", kept.Pods, "start", kept.Start)
		return
	}
}

// ReadyFor reports whether the gang has the turn and fits on what is kept for it, once the pods have left that make way
// for it.
func (r *Reservations) ReadyFor(id gang.ID) bool {
	current, _ := r.Search.Turns.Current()
	return r.current.kept.Ready && current == id
}

// Forget ends the turn of a gang that does not wait any more, if it has it.
func (r *Reservations) Forget(id gang.ID, started bool, now time.Time) {
	if current, _ := r.Search.Turns.Current(); current == id {
		if started && !r.current.told.IsZero() && r.Election.Leads() {
			startError.Observe(now.Sub(r.current.told).Abs().Seconds())
		}
		r.unreserve(id)
	}
	r.Search.Turns.Forget(id)
}

// renew looks again at what to keep for the gang and reports whether its turn goes on.
func (r *Reservations) renew(ctx context.Context, id gang.ID, now time.Time) bool {
	g, waits := r.Search.List.ByID[id]
	if !waits {
		r.Search.Turns.End(id)
		return false
	}
	if _, blocked := r.Agenda.Waiting(id); !blocked {
		// It is being tried.
		if start := r.current.kept.Start; !start.IsZero() && !start.After(now) {
			r.tell(id, word(&starts.Choice{Places: r.current.kept.Places, Ready: true}, nil, nil, now, now))
		}
		return true
	}
	c := &r.current
	if state := r.Search.List.Capacity.Looks.State(); g != c.of || state != c.state || !now.Before(c.until) {
		kept, ok := r.Search.choose(g, nil, !r.Search.Turns.Missed(now), now)
		if !ok || !r.hold(g, &kept) {
			r.Search.Turns.Skip(id, now)
			r.Search.Turns.End(id)
			return false
		}
		c.of, c.state, c.until, c.kept = g, state, now.Add(lookAnyway), kept
		if kept.Start.After(now) && kept.Start.Before(c.until) {
			c.until = kept.Start
		}
	}
	if !r.Search.Turns.Continue(&c.kept, now) {
		klog.FromContext(ctx).V(2).Info("Ended the reservation of a gang without progress", "gang", id, "podsToEnd",
			c.kept.Pods)
		return false
	}
	r.report(id, now)
	return true
}

// report has the status of the gang's PodGroup say what is kept for it.
func (r *Reservations) report(id gang.ID, now time.Time) {
	c := &r.current
	var end time.Time
	if c.waitsFor != nil {
		pod, known := r.Search.List.Capacity.Cluster.Pod(c.waitsFor.UID), false
		if pod != nil {
			end, known = work.EndOf(pod, r.Search.Holds.Gate.RunTime(pod), now)
		}
		if c.outlived = pod != nil && !known; !c.outlived {
			c.waitsFor = nil
		}
	}
	var last, outlived *v1.Pod
	if c.kept.Last != "" {
		last = r.Search.List.Capacity.Cluster.Pod(apitypes.UID(c.kept.Last))
	}
	if c.outlived {
		outlived = c.waitsFor
	} else {
		c.waitsFor = last
	}
	next := word(&c.kept, last, outlived, end, now)
	if c.told.IsZero() && next.Start != nil {
		c.told = c.kept.Start
	}
	r.tell(id, next)
}

// unreserve ends what is kept for the gang for its turn.
func (r *Reservations) unreserve(id gang.ID) {
	r.current = current{}
	r.tell(id, status.Reservation{})
	r.Search.Holds.Drop(func(o Hold) bool { return o.Kind == forTurn }, id)
}

// hold makes what is kept for the gang for its turn that of the reservation.
func (r *Reservations) hold(g *waiting.Gang, reserved *starts.Choice) bool {
	kept, turn := make([]Hold, 0, len(reserved.Places)), r.Search.turn(g)
	infos := make([]fwk.PodInfo, len(g.Pods))
	for _, place := range reserved.Places {
		if infos[place.Class] == nil {
			var err error
			if infos[place.Class], err = InfoOf(g.Pods[place.Class]); err != nil {
				return false
			}
		}
		for range place.Count {
			turn.Node, turn.Info, turn.start = place.Node, infos[place.Class], reserved.Start
			kept = append(kept, turn)
		}
	}
	r.Search.Holds.Keep(g.ID, forTurn, kept)
	return true
}
