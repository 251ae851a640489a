package evictor

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/defragment"
	"berth.dev/berth/pkg/eviction"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gpuview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/reservation"
	"berth.dev/berth/pkg/workview"
)

// movable says which pods may be moved for a gang, and what is lost with them.
type movable struct {
	evictor *Evictor
	moment  *workview.Moment
	// fixed are pods that fit nowhere else.
	fixed sets.Set[gang.UID]
}

// everything is more work than any pod has done.
const everything = 100 * 365 * 24 * time.Hour

// newMovable counts all work that is not saved. Preemption has a cap, so that no pod makes itself untouchable; none has
// to be moved.
func newMovable(e *Evictor, now time.Time) *movable {
	loss := *e.Sources.Loss
	loss.Limits.Unsaved = everything
	return &movable{evictor: e, moment: loss.At(now), fixed: sets.New[gang.UID]()}
}

// may reports whether the pod may move for a gang of the priority: it is no more important and in no gang, something
// replaces it, and this scheduler places what does.
func (m *movable) may(p *capacity.BoundPod, priority int32) bool {
	pod := p.Object
	return p.Priority <= priority && p.Of == (gang.ID{}) && !m.fixed.Has(p.UID) && pod.Spec.SchedulingGroup == nil &&
		!m.evictor.Members.Has(pod) && !podview.BelongsToNode(pod) && podview.Undisturbed(pod) == "" &&
		podview.ControllerOf(pod) != nil && m.evictor.Profiles.Of(pod) != nil &&
		m.moment.Now.Sub(workview.Started(pod)) >= defragment.Settled && !m.moment.IsProtected(pod)
}

// of is what is lost with the pod.
func (m *movable) of(pod *v1.Pod) defragment.Move {
	return defragment.Move{Lost: m.moment.Lost(pod), MilliGPUs: m.moment.Work(pod).Occupies()}
}

// movePlan are moves that pay and are possible by the account of free capacity.
type movePlan struct {
	*proposal
	defragment.Balance
	at time.Time
	// elsewhere are the nodes on which the replacements fit.
	elsewhere sets.Set[string]
}

// moveTries is how many sets of pods are looked at for a gang. Those that fit nowhere else are left out of the next.
const moveTries = 4

// findMoves looks for pods without which the gang fits, which lose less than it gains by its start, and which fit
// elsewhere. It returns nil if there are none.
func findMoves(e *Evictor, r *request, start time.Time) *movePlan {
	now := r.moves.moment.Now
	for range moveTries {
		found := e.propose(r, nil)
		if found.Outcome != eviction.RoomAfterEviction || len(found.leaving) > 0 || len(found.victims) > defragment.AtOnce {
			return nil
		}
		c := defragment.Case{Start: start}
		for _, placed := range found.Placed {
			c.MilliGPUs += int64(placed.Members) * r.moves.moment.Work(r.classes[placed.Class].pod).Occupies()
		}
		for _, pod := range found.victims {
			c.Moves = append(c.Moves, r.moves.of(pod))
		}
		balance := c.Weigh(now, e.Notifier.End(r.name, found.victims, time.Time{}, now).Sub(now))
		if !balance.Pays() {
			return nil
		}
		elsewhere, fixed := findElsewhere(e, r, found)
		if len(fixed) == 0 {
			return &movePlan{proposal: found, Balance: balance, at: now, elsewhere: elsewhere}
		}
		r.moves.fixed = r.moves.fixed.Union(fixed)
	}
	return nil
}

// findElsewhere looks for room for the pods that move, on other nodes than those that they and the gang use. It returns
// the nodes, and the pods that have no room.
func findElsewhere(e *Evictor, r *request, found *proposal) (nodes sets.Set[string], fixed sets.Set[gang.UID]) {
	nodes, fixed = sets.New[string](), sets.New[gang.UID]()
	var taken []reservation.Hold
	for _, placed := range found.Placed {
		info, err := reservation.InfoOf(r.classes[placed.Class].pod)
		if err != nil {
			continue
		}
		taken = append(taken, slices.Repeat([]reservation.Hold{{To: r.id, Node: placed.Node, Info: info}}, placed.Members)...)
	}
	left := sets.KeySet(maps.Clone(found.pods))
	for _, pod := range found.victims {
		left.Insert(pod.Spec.NodeName)
	}
	largestFirst := slices.SortedFunc(slices.Values(found.victims), func(a, b *v1.Pod) int {
		return cmp.Or(cmp.Compare(r.moves.moment.Work(b).Occupies(), r.moves.moment.Work(a).Occupies()),
			cmp.Compare(a.UID, b.UID))
	})
	for _, pod := range largestFirst {
		again := gpuview.Unplaced(pod)
		class := string(e.Capacity.ShapeOf(again))
		said := findings{}
		for node := range left {
			said[gang.Refusal{Class: class, Node: node}] = true
		}
		to := e.propose(&request{name: r.name, of: r.id, priority: math.MinInt32, taken: taken,
			demand: demand{need: gang.Minimum{Total: 1}, classes: []requestClass{{class: class, pod: again, count: 1}}}}, said)
		info, err := reservation.InfoOf(again)
		if to.Outcome != eviction.RoomAlready || err != nil {
			fixed.Insert(gang.UID(pod.UID))
			continue
		}
		nodes.Insert(to.Placed[0].Node)
		taken = append(taken, reservation.Hold{Node: to.Placed[0].Node, Info: info})
	}
	return nodes, fixed
}
