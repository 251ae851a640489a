package reservation

import (
	"context"
	"hash/maphash"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/starttime"
	"berth.dev/berth/pkg/waitlist"
)

// schedule is what is kept by time: the first gangs get the nodes on which they start the soonest.
type schedule struct {
	board *starttime.Board
	// held are the gangs for which nodes are kept.
	held map[gang.ID]*heldGang
	// seen is what there was at the last look, due when to look again although it is the same, and keeps whether anything
	// was kept.
	seen  sight
	due   time.Time
	keeps bool
}

// Start is when a gang is likely to start.
type Start struct {
	Gang gang.ID
	At   time.Time
}

// sight is another if the cluster or the gangs that wait for nodes are.
type sight struct{ cluster, gangs uint64 }

var sightSeed = maphash.MakeSeed()

// sight returns what there is now. A gang that has changed is another object. Where starts are only told, they are
// soon enough told again when it is looked anyway: a look takes milliseconds, and large clusters change each second.
func (r *Reservations) sight(waiting []*waitlist.Gang) sight {
	var s sight
	if r.keepsByTime() {
		s.cluster = r.Search.List.Capacity.Looks.State()
	}
	for _, g := range waiting {
		s.gangs += maphash.Comparable(sightSeed, g)
	}
	return s
}

// keepsByTime reports whether nodes are kept by time, and starts not only told.
func (r *Reservations) keepsByTime() bool { return r.Search.Holds.Gate.Entry.Held > 0 }

// lookAnyway is how often it is looked at what to keep while nothing has changed but the time.
const lookAnyway = 10 * time.Second

// anyway is how often starts are planned while nothing has changed but the time.
func (r *Reservations) anyway() time.Duration {
	if r.keepsByTime() {
		return lookAnyway
	}
	return tellEvery
}

// heldGang is a gang for which nodes are kept by time.
type heldGang struct {
	// since is when that began, ready since when the gang fits there, zero while it does not.
	since, ready time.Time
	// blocksOthers is set if pods of other namespaces were turned away meanwhile.
	blocksOthers bool
}

func (s *schedule) readyFor(id gang.ID) bool {
	h := s.held[id]
	return h != nil && !h.ready.IsZero()
}

// another reports whether nodes are kept for a second gang of the namespace.
func (s *schedule) another(than gang.ID) bool {
	for id := range s.held {
		if id != than && id.Namespace == than.Namespace {
			return true
		}
	}
	return false
}

// timedPlan is one look at what to keep by time.
type timedPlan struct {
	gangs []*waitlist.Gang
	rows  []capacity.Row
	// at is the row of each class, by gang.
	at    [][]int
	nodes []capacity.NodeEnds
	// together is what members of the shapes of a row ask for that share nodes, asked what was asked of the board.
	together [][][]int64
	asked    []starttime.Gang
	// singles are pods in no gang that are told a start, singleRows their rows.
	singles    []*v1.Pod
	singleRows []int
}

// lookByTime brings what is kept by time in line with the cluster, and reports whether anything is: otherwise gangs
// have turns. It returns a gang that has become ready to start.
func (r *Reservations) lookByTime(ctx context.Context, first bool, now time.Time) (ready gang.ID, keeps bool) {
	s := &r.schedule
	if len(s.held) == 0 && (r.Search.Holds.Gate.Forecasts == nil || !r.Search.Holds.Gate.Forecasts.Informed()) {
		r.Singles.silence()
		r.Starts = nil
		return ready, false
	}
	if s.board == nil {
		s.board, s.held = starttime.NewBoard(r.Search.Holds.Gate.Entry), map[gang.ID]*heldGang{}
	}
	for id, h := range s.held {
		h.blocksOthers = r.Search.Holds.Gate.Away.blocked(id) || h.blocksOthers
		if _, waits := r.Agenda.Waiting(id); !waits {
			// It is being tried.
			return ready, true
		}
	}
	waiting := r.Search.waiting(first, now)
	seen := r.sight(waiting)
	if seen == s.seen && now.Before(s.due) {
		return ready, s.keeps
	}
	s.seen, s.due = seen, now.Add(r.anyway())
	plan := r.Search.askFor(waiting)
	tellsSingles := r.Singles.isDue(now)
	if tellsSingles {
		r.Singles.askFor(plan, &r.Search, now)
	}
	r.Search.answer(plan, now)
	reservations := r.board(ctx, plan, now)
	if tellsSingles {
		r.Singles.tellStarts(plan, &r.Search, reservations, now)
	}
	r.Starts = r.Starts[:0]
	kept, told := map[gang.ID]bool{}, map[gang.ID]bool{}
	turn, _ := r.Search.Turns.Current()
	before := map[string]map[gang.ID]bool{}
	for i, reserved := range reservations {
		at := slices.IndexFunc(plan.gangs, func(g *waitlist.Gang) bool { return g.ID.String() == reserved.Gang })
		if at < 0 {
			continue
		}
		g := plan.gangs[at]
		r.Starts = append(r.Starts, Start{g.ID, reserved.Told.Likely})
		if reserved.Slipped && r.Leader.Leading() {
			slips.Inc()
		}
		if !reserved.Held || !r.holdByTime(plan, g, &reserved, before) {
			if told[g.ID] = true; g.ID != turn {
				r.tellStart(plan, g, i+1, &reserved, now)
			}
			continue
		}
		h := s.held[g.ID]
		if h == nil {
			h = &heldGang{since: now}
			s.held[g.ID] = h
			klog.FromContext(ctx).V(2).Info("Reserving nodes for a gang", "gang", g.ID, "nodes", len(reserved.Places),
				"starts", reserved.Told.Likely)
		}
		switch {
		case !reserved.Now():
			h.ready = time.Time{}
		case h.ready.IsZero():
			h.ready = now
			if ready == (gang.ID{}) {
				ready = g.ID
			}
		}
		if r.Search.inVain(g.ID.Namespace, h, &reserved, now) {
			klog.FromContext(ctx).V(2).Info("Ended the reservation of a gang that did not start", "gang", g.ID)
			r.Search.Turns.Rest(g.ID, now)
			continue
		}
		kept[g.ID], told[g.ID] = true, true
		r.tellStart(plan, g, i+1, &reserved, now)
	}
	for _, id := range slices.SortedFunc(maps.Keys(s.held), gang.ID.Compare) {
		if !kept[id] {
			r.release(id, s.held[id], now)
		}
	}
	for _, id := range r.Messages.gangs() {
		if !told[id] && id != turn && r.Messages.set(id, said{}) {
			r.Changed(id)
		}
	}
	if s.keeps = len(kept) > 0; !s.keeps {
		return ready, false
	}
	r.takeOver(now)
	return ready, true
}

// takeOver ends the turn of a gang that has one, as what is kept is kept by time.
func (r *Reservations) takeOver(now time.Time) {
	if id, _ := r.Search.Turns.Current(); id != (gang.ID{}) {
		r.Search.Turns.End(id, now)
		r.ready = false
		if r.schedule.held[id] == nil {
			r.Search.Holds.Drop(id, func(o Hold) bool { return o.Kind == forTurn })
		}
	}
	age.Set(0)
	if r.Leader.Leading() {
		for _, h := range r.schedule.held {
			age.Set(now.Sub(h.since).Seconds())
		}
	}
}

// release ends what is kept by time for a gang that has not started.
func (r *Reservations) release(id gang.ID, h *heldGang, now time.Time) {
	if r.Search.Holds.Gate.Away.blocked(id) || h.blocksOthers {
		r.Search.Turns.Charge(id.Namespace, h.since, now)
	}
	delete(r.schedule.held, id)
	r.Search.Holds.Drop(id, func(o Hold) bool { return o.Kind == forTurn })
}

// forgetByTime ends what is kept by time for a gang that does not wait any more.
func (r *Reservations) forgetByTime(id gang.ID, started bool, now time.Time) {
	if s := &r.schedule; s.board != nil && started {
		if first, told := s.board.Started(id.String(), now); told && r.Leader.Leading() {
			observe(startError, first, now)
		}
	}
	if h := r.schedule.held[id]; h != nil {
		if started {
			// What is kept for another gang of the namespace meanwhile is not made up for.
			if !r.schedule.another(id) {
				r.Search.Turns.Credit(id.Namespace, h.since, now)
			}
			h.blocksOthers = false
			r.Search.Holds.Gate.Away.blocked(id)
		}
		r.release(id, h, now)
	}
	if r.Messages.set(id, said{}) {
		r.Changed(id)
	}
}

// add asks for the gang, with a row for each of its shapes.
func (p *timedPlan) add(g *waitlist.Gang, emptied map[string]bool, makesWay func(*v1.Pod, int32) bool) {
	known := map[capacity.ShapeKey]int{}
	at := make([]int, len(g.Classes))
	for c := range g.Classes {
		shape := g.Shapes[c].Shape
		row, asked := known[shape]
		if !asked {
			row = len(p.rows)
			known[shape] = row
			p.rows = append(p.rows, capacity.Row{Shape: shape, Labels: g.Levels.Required, Emptied: emptied, MakesWay: makesWay})
		}
		at[c] = row
	}
	if shapes := len(known); shapes > 1 && g.Divided() {
		first := &p.rows[len(p.rows)-shapes]
		for _, row := range p.rows[len(p.rows)-shapes:] {
			first.Together = append(first.Together, row.Shape)
		}
	}
	p.gangs, p.at = append(p.gangs, g), append(p.at, at)
}

// holdByTime keeps the places of the reservation for the gang. before holds, by node, the gangs that come before it
// there.
func (r *Reservations) holdByTime(p *timedPlan, g *waitlist.Gang, reserved *starttime.Reservation,
	before map[string]map[gang.ID]bool) bool {
	i := slices.Index(p.gangs, g)
	var kept []Hold
	for _, place := range reserved.Places {
		class := slices.Index(p.at[i], p.asked[i].Members[place.Members].Shape)
		info, err := InfoOf(g.Pods[class])
		if err != nil {
			return false
		}
		node := &p.nodes[place.Node]
		goes := make(map[gang.UID]bool, place.Gone)
		for _, pod := range node.Pods[:place.Gone] {
			goes[gang.UID(pod.UID)] = true
		}
		hold := Hold{To: g.ID, Kind: forTurn, Priority: g.Key.Priority, Node: node.Name, Info: info, start: reserved,
			goes:   goes,
			behind: before[node.Name]}
		for range place.Count {
			kept = append(kept, hold)
		}
	}
	r.Search.Holds.Keep(g.ID, forTurn, kept)
	for _, hold := range kept {
		// What was handed out is not changed.
		first := maps.Clone(before[hold.Node])
		if first == nil {
			first = map[gang.ID]bool{}
		}
		first[g.ID] = true
		before[hold.Node] = first
	}
	return true
}

// lastEnd returns the pod that has to end last for the gang, and when that is expected; nil if none has to.
func (p *timedPlan) lastEnd(reserved *starttime.Reservation) (*v1.Pod, time.Time) {
	var last *v1.Pod
	var at time.Time
	for _, place := range reserved.Places {
		if place.Gone == 0 {
			continue
		}
		node := &p.nodes[place.Node]
		if end := reserved.At.Add(node.Ends[place.Gone-1].At(0.5)); last == nil || end.After(at) {
			last, at = node.Pods[place.Gone-1], end
		}
	}
	return last, at
}

// workloadOf names what users know the pod by.
func workloadOf(pod *v1.Pod) string {
	_, name := podview.WorkloadOf(pod)
	return name
}
