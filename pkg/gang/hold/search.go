package hold

import (
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	apitypes "k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/plan/sets"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/starts"
	"berth.dev/berth/pkg/gang/tree"
	"berth.dev/berth/pkg/gang/waiting"
	"berth.dev/berth/pkg/gang/work"
	"berth.dev/berth/pkg/podview"
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
	List    *waiting.List
	Holds   *Holds
	Turns   *starts.Turns
	// Sets divides gangs into groups and segments.
	Sets *sets.Divider

	// backfills holds, for one look, which pods between two priorities may backfill.
	backfills map[[2]int32]map[apitypes.UID]bool
}

// waiting returns the gangs that may have the next turn; with follows, only those for which another scheduler keeps
// something, if there are any.
func (s *Search) waiting(follows bool, now time.Time) []*waiting.Gang {
	var next, before []*waiting.Gang
	for id, g := range s.List.ByID {
		if !s.Turns.MayBegin(id, now) || s.Holders.percent(id.Namespace, g.Key.Priority, true) == 0 {
			continue
		}
		if follows && s.keptBefore(id) != nil {
			before = append(before, g)
		}
		if !g.Fresh && now.Sub(g.Since) >= s.After {
			next = append(next, g)
		}
	}
	if len(before) > 0 {
		return before
	}
	return next
}

// keptBefore returns the nodes that are kept for the gang by its status, nil if none are.
func (s *Search) keptBefore(id gang.ID) map[string]bool {
	pg := s.List.Members.Group(id)
	if pg == nil || !meta.IsStatusConditionTrue(pg.Status.Conditions, schedulingv1alpha1.PodGroupReserved) {
		return nil
	}
	nodes := map[string]bool{}
	for _, name := range pg.Status.ReservedNodes {
		nodes[name] = true
	}
	return nodes
}

// begin returns what to keep for a gang whose turn begins. With follows, what another scheduler has kept for it stays,
// and told is the start that it has told.
func (s *Search) begin(g *waiting.Gang, follows bool, now time.Time) (kept starts.Choice, told time.Time, ok bool) {
	if before := s.keptBefore(g.ID); follows && len(before) > 0 {
		if start := s.List.Members.Group(g.ID).Status.EstimatedStart; start != nil && start.Time.After(now) {
			told = start.Time.Time
		}
		if kept, ok = s.choose(g, before, true, now); ok {
			return kept, told, true
		}
	}
	kept, ok = s.choose(g, nil, true, now)
	return kept, told, ok
}

// chosen returns for which of the gangs to look now. Gangs for which nothing can be kept rest for a minute; if there
// are very many, those behind them would never be looked at if the order of the queue alone counted.
func (s *Search) chosen(next []*waiting.Gang) []*waiting.Gang {
	slices.SortFunc(next, waiting.FirstByKey)
	if len(next) <= reservePlans {
		return next
	}
	since := func(g *waiting.Gang) time.Time {
		if rested := s.Turns.Rested(g.ID); rested.After(g.Since) {
			return rested
		}
		return g.Since
	}
	others := next[reservePlans/2:]
	slices.SortStableFunc(others, func(a, b *waiting.Gang) int { return since(a).Compare(since(b)) })
	return next[:reservePlans]
}

// cost returns how many rooms it takes to find out what to keep for the gang.
func (s *Search) cost(g *waiting.Gang) int {
	shapes := map[capacity.ShapeKey]bool{}
	for _, need := range g.Shapes {
		shapes[need.Shape] = true
	}
	return len(shapes) * s.List.Capacity.Cluster.Size()
}

// choose returns what to keep for the gang on some nodes, on any if it is not said which: with byTime those on which it
// starts the soonest by the ends that are known, if these are enough, else those that are the nearest to being free.
// Pods that the gang may evict count as gone.
func (s *Search) choose(g *waiting.Gang, some map[string]bool, byTime bool, now time.Time) (starts.Choice, bool) {
	if slices.Contains(g.Pods, nil) || s.cost(g) > reserveRooms || !s.List.MayFit(g, true) {
		return starts.Choice{}, false
	}
	// The account knows nothing of devices: on the nodes that it chose the gang may not fit.
	if slices.ContainsFunc(g.Pods, func(p *v1.Pod) bool { return len(p.Spec.ResourceClaims) > 0 }) {
		return starts.Choice{}, false
	}
	most := func(byTime bool) int {
		return s.List.Capacity.Cluster.Size() * s.Holders.percent(g.ID.Namespace, g.Key.Priority, byTime) / 100
	}
	p := &starts.Problem{Need: g.Need, MaxNodes: most(true)}
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
		p.Classes = append(p.Classes, starts.Class{Role: c.Role, Count: c.Count, Shape: at[shape]})
	}
	// Who makes way is found out first: the account must not be locked for so long.
	var asks [][]int64
	p.Nodes, asks = s.List.Capacity.Rooms(shapes, g.Levels.Required, g.Divided() && len(shapes) > 1,
		s.makesWay(g), s.ends(now))
	if g.Divided() {
		var err error
		if p.Tree, err = s.outline(g, p, asks); err != nil {
			return starts.Choice{}, false
		}
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		n.Kept = held[n.Name]
		if some != nil && !some[n.Name] {
			n.Domain = -1
		}
	}
	if byTime {
		if kept, ok := starts.Soonest(p, now); ok {
			return kept, true
		}
	}
	p.MaxNodes = most(false)
	return starts.Choose(p)
}

// outline poses which domains the groups or segments of the gang get. asks says what members of each shape ask for;
// nil if there is one shape.
func (s *Search) outline(g *waiting.Gang, p *starts.Problem, asks [][]int64) (*tree.Problem, error) {
	shapes := map[string]int{}
	for c, class := range g.Classes {
		shapes[class.Class] = p.Classes[c].Shape
	}
	nodes := make([]*v1.Node, len(p.Nodes))
	for i := range nodes {
		if nodes[i] = s.List.Capacity.Cluster.Node(p.Nodes[i].Name); nodes[i] == nil {
			nodes[i] = &v1.Node{} // it has just gone, and is in no domain
		}
	}
	_, members := s.Sets.Ledger.Lacking(g.ID)
	posed, err := s.Sets.Outline(g.ID, g.Levels, g.Need, members, shapes, nodes)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says which pod
	}
	if asks != nil {
		posed.Asks = asks
	}
	return &posed.Problem, nil
}

// ends returns what says when a bound pod ends, false if that is not known.
func (s *Search) ends(now time.Time) func(*capacity.BoundPod) (time.Time, bool) {
	// What is said of a gang is read once, by one of its members.
	type word struct {
		group *schedulingv1alpha1.PodGroup
		limit time.Duration
	}
	words := map[gang.ID]word{}
	return func(p *capacity.BoundPod) (time.Time, bool) {
		of, known := words[p.Of]
		if !known && p.Of != (gang.ID{}) {
			of = word{s.Holds.Gate.Members.Group(p.Of), s.Holds.Gate.limit(p.Object)}
			words[p.Of] = of
		}
		return work.EndOf(p.Object, work.RunTime(p.Object, of.group, of.limit), now)
	}
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
		says, _ := read.Backfill(p.Object)
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

// turn returns what all holds of a reservation for the gang have in common.
func (s *Search) turn(g *waiting.Gang) Hold {
	return Hold{To: g.ID, Kind: forTurn, Priority: g.Key.Priority,
		backfills: slices.ContainsFunc(g.Pods, s.Holds.Gate.AllowsBackfill)}
}

// makesWay returns what reports whether a bound pod leaves as soon as the gang can start: the gang may evict it, or it
// backfills.
func (s *Search) makesWay(g *waiting.Gang) func(*v1.Pod, int32) bool {
	preempts, least := true, g.Key.Priority
	if slices.ContainsFunc(g.Pods, podview.NeverPreempts) {
		preempts, least = false, math.MinInt32
	}
	backfills, turn := s.backfilling(least, g.Key.Priority), s.turn(g)
	return func(pod *v1.Pod, priority int32) bool {
		return preempts && priority < g.Key.Priority || turn.opensTo(priority) && backfills[pod.UID]
	}
}
