package reservation

import (
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	apitypes "k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/dryrun/sets"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/reserve"
	"berth.dev/berth/pkg/runtimes"
	"berth.dev/berth/pkg/starttime"
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

// Search finds which gangs may have something kept for them, and what that may be.
type Search struct {
	// Holders says for whose gangs something is kept, after how long a gang has to have waited for that.
	Holders Holders
	After   time.Duration
	List    *waitlist.List
	Holds   *Holds
	Turns   *reserve.Turns
	// Sets divides gangs into groups and segments.
	Sets *sets.Divider

	// watch finds nodes on which no pod ends while they are kept.
	watch reserve.Watch
	// backfills holds, for one look, which pods between two priorities may backfill.
	backfills map[[2]int32]map[apitypes.UID]bool
}

// waiting returns the gangs that may have the next turn.
func (s *Search) waiting(first bool, now time.Time) []*waitlist.Gang {
	var next []*waitlist.Gang
	for id, g := range s.List.ByID {
		patient := !g.Fresh && now.Sub(g.Since) >= s.After
		if (patient || first && s.keptBefore(id) != nil) && s.Turns.MayBegin(id, now) &&
			s.Holders.percent(id.Namespace, g.Key.Priority) > 0 {
			next = append(next, g)
		}
	}
	return next
}

// keptBefore returns the nodes that a scheduler before this one kept for the gang to its end, nil if it kept none.
func (s *Search) keptBefore(id gang.ID) map[string]bool {
	pg := s.List.PodGroup(id)
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
func (s *Search) begin(g *waitlist.Gang, first bool, now time.Time) (reserve.Choice, bool) {
	if before := s.keptBefore(g.ID); first && len(before) > 0 {
		if kept, ok := s.nearestAmong(g, before, now); ok {
			return kept, true
		}
	}
	return s.nearest(g, now)
}

// chosen returns for which of the gangs to look now. Gangs for which nothing can be kept rest for a minute; if there
// are very many, those behind them would never be looked at if the order of the queue alone counted.
func (s *Search) chosen(next []*waitlist.Gang) []*waitlist.Gang {
	slices.SortFunc(next, waitlist.FirstByKey)
	if len(next) <= reservePlans {
		return next
	}
	since := func(g *waitlist.Gang) time.Time {
		if rested := s.Turns.Rested(g.ID); rested.After(g.Since) {
			return rested
		}
		return g.Since
	}
	others := next[reservePlans/2:]
	slices.SortStableFunc(others, func(a, b *waitlist.Gang) int { return since(a).Compare(since(b)) })
	return next[:reservePlans]
}

// cost returns how many rooms it takes to find out what to keep for the gang.
func (s *Search) cost(g *waitlist.Gang) int {
	shapes := map[capacity.ShapeKey]bool{}
	for _, need := range g.Shapes {
		shapes[need.Shape] = true
	}
	return len(shapes) * s.List.Capacity.Cluster.Size()
}

// nearest returns what to keep for the gang. Pods that the gang may evict count as gone.
func (s *Search) nearest(g *waitlist.Gang, now time.Time) (reserve.Choice, bool) {
	return s.nearestAmong(g, nil, now)
}

// nearestAmong returns what to keep for the gang on some nodes, of all if it is not said which.
func (s *Search) nearestAmong(g *waitlist.Gang, some map[string]bool, now time.Time) (reserve.Choice, bool) {
	emptied := s.List.Capacity.Cluster.CordonedFor(g.ID)
	if slices.Contains(g.Pods, nil) || s.cost(g) > reserveRooms || len(emptied) == 0 && !s.List.MayFit(g, true) {
		return reserve.Choice{}, false
	}
	p := &reserve.Problem{Need: g.Need,
		MaxNodes: s.List.Capacity.Cluster.Size() * s.Holders.percent(g.ID.Namespace, g.Key.Priority) / 100}
	held := map[string]bool{}
	for _, o := range s.Holds.To(g.ID) {
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
	// Who makes way is found out first: the account must not be locked for so long.
	var asks [][]int64
	p.Nodes, asks = s.List.Capacity.Rooms(shapes, g.Levels.Required, emptied, g.Divided() && len(shapes) > 1,
		s.makesWay(g))
	if g.Divided() {
		nodes := make([]*v1.Node, len(p.Nodes))
		for i := range nodes {
			nodes[i] = s.List.Capacity.Cluster.Node(p.Nodes[i].Name)
		}
		var err error
		if p.Tree, err = s.outline(g, func(class int) int { return p.Classes[class].Shape }, asks, nodes); err != nil {
			return reserve.Choice{}, false
		}
	}
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
	if id, _ := s.Turns.Current(); id == g.ID {
		s.watch.Look(p.Nodes, now)
	} else {
		s.watch.Mark(p.Nodes)
	}
	return reserve.Choose(p)
}

// backfilling returns the bound pods of these priorities and those between them that may backfill.
func (s *Search) backfilling(least, most int32) map[apitypes.UID]bool {
	key := [2]int32{least, most}
	found, known := s.backfills[key]
	if known {
		return found
	}
	found = map[apitypes.UID]bool{}
	// Most pods are in no gang and say nothing, which is seen at once.
	may := func(p *capacity.BoundPod) bool {
		says, _ := gangview.PodBackfill(p.Object)
		return says || p.Of != (gang.ID{})
	}
	for _, pod := range s.List.Capacity.Cluster.PodsBetween(least, most, may) {
		if s.Holds.Gate.AllowsBackfill(pod) {
			found[pod.UID] = true
		}
	}
	if s.backfills == nil {
		s.backfills = map[[2]int32]map[apitypes.UID]bool{}
	}
	s.backfills[key] = found
	return found
}

// askFor begins a plan by time of the first of the waiting gangs.
func (s *Search) askFor(waiting []*waitlist.Gang) *timedPlan {
	p := &timedPlan{}
	rooms := reserveRooms
	for _, g := range slices.SortedFunc(slices.Values(waiting), waitlist.FirstByKey) {
		emptied := s.List.Capacity.Cluster.CordonedFor(g.ID)
		cost := s.cost(g)
		if slices.Contains(g.Pods, nil) || cost > rooms || len(p.gangs) == reservePlans ||
			len(emptied) == 0 && !s.List.MayFit(g, true) {
			continue
		}
		rooms -= cost
		p.add(g, emptied, s.makesWay(g))
	}
	return p
}

// answer finds out how many of the pods that the plan asks for fit on each node as the pods there end.
func (s *Search) answer(p *timedPlan, now time.Time) {
	if len(p.rows) > 0 {
		p.nodes, p.together = s.List.Capacity.Ends(p.rows,
			func(pod *v1.Pod) runtimes.Forecast { return s.Holds.Gate.Forecasts.Left(pod, now) })
	}
}

// makesWay returns what reports whether a bound pod leaves as soon as the gang can start: the gang may evict it, or it
// backfills.
func (s *Search) makesWay(g *waitlist.Gang) func(*v1.Pod, int32) bool {
	preempts, least := true, g.Key.Priority
	if slices.ContainsFunc(g.Pods, podview.NeverPreempts) {
		preempts, least = false, math.MinInt32
	}
	backfills := s.backfilling(least, g.Key.Priority)
	return func(pod *v1.Pod, priority int32) bool {
		return preempts && priority < g.Key.Priority || backfills[pod.UID]
	}
}

// inVain reports whether a gang has not started for long although it fits, or the time by which it was to start is long
// over: for half as long as nodes were kept until then, as what ends late often ends much later. What other gangs of
// the namespace have kept from others without a start counts, too.
func (s *Search) inVain(namespace string, h *heldGang, reserved *starttime.Reservation, now time.Time) bool {
	late := max(reserved.Until.Sub(h.since)/2, 0)
	if reserved.Firm && s.Turns.Overdue(reserved.Until.Add(late), now) {
		return true
	}
	return !h.ready.IsZero() &&
		(s.Turns.Overdue(h.ready, now) || h.blocksOthers && s.Turns.Spent(namespace, h.ready, now))
}

// keptOf returns what is kept on the nodes of the plan: by time, and for the gang whose turn it is.
func (s *Search) keptOf(p *timedPlan, reserved []starttime.Reservation, now time.Time) []starttime.Kept {
	at := make(map[string]int, len(p.nodes))
	for i := range p.nodes {
		at[p.nodes[i].Name] = i
	}
	turn, _ := s.Turns.Current()
	var kept []starttime.Kept
	for i, g := range p.gangs {
		until := runtimes.Certain(runtimes.Never)
		start := slices.IndexFunc(reserved, func(o starttime.Reservation) bool { return o.Gang == g.ID.String() })
		if start >= 0 {
			run := s.Holds.Gate.Forecasts.Left(g.Pods[0], now)
			until = run.After(&reserved[start].Start)
		}
		part := func(node, row int) float64 {
			fits := p.nodes[node].Fits[row]
			return 1 / float64(max(fits[len(fits)-1], 1))
		}
		switch {
		case start >= 0 && reserved[start].Held:
			for _, place := range reserved[start].Places {
				kept = append(kept, starttime.Kept{Node: place.Node, Start: &reserved[start], Until: until,
					Share: float64(place.Count) * part(place.Node, p.asked[i].Members[place.Members].Shape)})
			}
		case g.ID == turn:
			for _, o := range s.Holds.To(turn) {
				if node, planned := at[o.Node]; planned && o.Kind == forTurn {
					kept = append(kept, starttime.Kept{Node: node, Share: part(node, p.at[i][0]), Until: until})
				}
			}
		}
	}
	return kept
}
