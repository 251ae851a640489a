package waiting

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/members"
	"berth.dev/berth/pkg/gang/obstacle"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process"
)

const (
	// describeRest is how long changes of a gang wait after a look at it, for each class beyond freeClasses, the number
	// that costs next to nothing.
	describeRest = time.Millisecond
	freeClasses  = 32
)

// Gang is a gang that waits to be planned, with what the account of free capacity has to know of it.
type Gang struct {
	gang.Waiting
	Shapes []capacity.Need
	Pods   []*v1.Pod
	Needs  Needs
	Near   neighbors
	Levels read.Topology
	// Misstated is what is wrong with what the gang says of topology and models; nil if nothing is.
	Misstated obstacle.Reason
	Backoff   Backoff
	// RestUntil is before when changes of a gang of many classes are not looked at: each look costs as much as there
	// are classes.
	RestUntil time.Time
	// Excluded is set while the account rules the gang out, listed while it is in the list of such gangs.
	Excluded, Listed bool
	// Roomy is set if the gang fitted by the account when it was last invited.
	Roomy bool
	// DescribedAt is the state of the account for which the reason was last found.
	DescribedAt uint64
}

// Divided reports whether members share domains of the topology with some of the others only: they are in groups, or in
// segments.
func (g *Gang) Divided() bool { return g.Levels.Segment.Size > 0 || g.Need.Tree != nil }

// Backoff is that of a gang after failed attempts.
type Backoff struct {
	// Since is when the last attempt was seen to have failed, until what the ledger says.
	Since, Until time.Time
	// Misjudged is set if the gang fitted by the account before the attempt and after it.
	Misjudged bool
	// Ended is when it ends instead because what the gang may have lacked has come since, zero if nothing has.
	Ended time.Time
}

// List owns what is known of the gangs that wait to be planned. Only the loop uses it, but for Priorities.
type List struct {
	Capacity *capacity.Index
	Members  *members.Directory
	Profiles *process.Profiles

	ByID    map[gang.ID]*Gang
	ByShape map[capacity.ShapeKey]map[gang.ID]bool
	// Excluded holds the gangs that the account rules out, in the order in which to look at them again.
	Excluded []gang.ID
	// Priorities are as of the last turn of the loop, but for pods that have failed since.
	Priorities Priorities
}

// NewList returns a list without gangs. Its exported fields have to be set.
func NewList() *List {
	l := &List{ByID: map[gang.ID]*Gang{}, ByShape: map[capacity.ShapeKey]map[gang.ID]bool{}}
	l.Priorities.Count(l.ByID, nil)
	return l
}

// Put takes in what the ledger says of a gang that waits. failed is set if an attempt has failed since the last time.
func (l *List) Put(waits gang.Waiting, now time.Time) (g *Gang, failed bool) {
	known := l.ByID[waits.ID]
	g = l.describe(waits, known)
	g.RestUntil = now.Add(time.Duration(max(len(g.Classes)-freeClasses, 0)) * describeRest)
	if known != nil {
		l.unindex(known)
		g.Excluded, g.Listed, g.Roomy, g.DescribedAt = known.Excluded, known.Listed, known.Roomy, known.DescribedAt
	}
	l.Index(g)
	switch {
	case known != nil && known.Backoff.Until.Equal(g.RetryAt):
		g.Backoff = known.Backoff
	case g.RetryAt.After(now):
		g.Backoff, failed = Backoff{Since: now, Until: g.RetryAt}, true
	}
	if !g.Backoff.Ended.IsZero() {
		g.RetryAt = g.Backoff.Ended
	}
	return g, failed
}

// Index puts the gang into the list.
func (l *List) Index(g *Gang) {
	l.ByID[g.ID] = g
	for _, s := range g.Shapes {
		if l.ByShape[s.Shape] == nil {
			l.ByShape[s.Shape] = map[gang.ID]bool{}
		}
		l.ByShape[s.Shape][g.ID] = true
	}
}

func (l *List) unindex(g *Gang) {
	for _, s := range g.Shapes {
		if delete(l.ByShape[s.Shape], g.ID); len(l.ByShape[s.Shape]) == 0 {
			delete(l.ByShape, s.Shape)
		}
		l.Capacity.Release(s.Shape)
	}
}

// Drop forgets a gang that does not wait any more.
func (l *List) Drop(g *Gang) {
	l.unindex(g)
	delete(l.ByID, g.ID)
}

// describe finds out what the gang needs. known is what was found before, or nil: the shapes of pods that are the same
// have not changed.
func (l *List) describe(waits gang.Waiting, known *Gang) *Gang {
	g := &Gang{Waiting: waits, Needs: NeedsAnything}
	if l.Capacity.Cluster.AnyBelow(waits.Key.Priority) {
		g.Needs |= NeedsEvictions
	}
	for i, c := range waits.Classes {
		pod := l.Members.Pod(c.Example)
		g.Pods = append(g.Pods, pod)
		if pod == nil {
			continue
		}
		g.Shapes = append(g.Shapes, capacity.Need{Shape: l.acquire(pod, i, known), Count: c.Count})
		g.Needs |= needsOf(pod, l.Profiles.Traits(pod))
		g.Near.add(pod)
		levels, err := l.Members.Topology(waits.ID, pod)
		if err != nil {
			g.Misstated = obstacle.Text(err.Error())
		}
		g.Levels = levels
	}
	return g
}

// acquire makes the shape of the pod live, the example of the i-th class.
func (l *List) acquire(pod *v1.Pod, i int, known *Gang) capacity.ShapeKey {
	if known == nil || i >= len(known.Shapes) || len(known.Shapes) < len(known.Pods) || known.Pods[i] != pod {
		return l.Capacity.Acquire(pod)
	}
	l.Capacity.Retain(known.Shapes[i].Shape)
	return known.Shapes[i].Shape
}

func needsOf(pod *v1.Pod, filters *process.Traits) Needs {
	var n Needs
	if process.HasVolumes(pod) {
		n |= NeedsVolumes
	}
	if filters.Claims(pod) {
		n |= NeedsDevices
	}
	if filters.OrderMatters(pod) || podview.HasHostPorts(pod) {
		n |= NeedsPods
	}
	return n
}

// Selective reports whether a gang waits to which it matters that pods come to nodes.
func (l *List) Selective() bool {
	for _, g := range l.ByID {
		if !g.Near.empty() {
			return true
		}
	}
	return false
}

// FirstByKey orders gangs as they are tried.
func FirstByKey(a, b *Gang) int {
	switch {
	case a.Key.Less(b.Key):
		return -1
	case b.Key.Less(a.Key):
		return 1
	}
	return 0
}
