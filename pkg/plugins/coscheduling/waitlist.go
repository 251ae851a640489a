package coscheduling

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/dryrun"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/profiles"
)

// describeRest is how long changes of a gang wait after a look at it, for each class beyond manyClasses.
const describeRest = time.Millisecond

// waitingGang is a gang that waits to be planned, with what the account of free capacity has to know of it.
type waitingGang struct {
	gang.Waiting
	shapes   []capacity.Need
	pods     []*v1.Pod
	needs    needs
	near     neighbors
	required []string
	// misstated is what is wrong with what the gang says of topology and models; nil if nothing is.
	misstated gang.Reason
	backoff   backoff
	// restUntil is before when changes of a gang of many classes are not looked at: each look costs as much as there are classes.
	restUntil time.Time
	// excluded is set while the account rules the gang out, listed while it is in the list of such gangs.
	excluded, listed bool
	// describedAt is the state of the account for which the reason was last found.
	describedAt uint64
}

// backoff is that of a gang after failed attempts.
type backoff struct {
	// since is when the last attempt was seen to have failed, until what the ledger says.
	since, until time.Time
	// misjudged is set if the gang fitted by the account then, ended if capacity came free for it since.
	misjudged, ended bool
}

// waitlist owns what is known of the gangs that wait to be planned. Only the loop uses it, but for comesBefore.
type waitlist struct {
	headroom *capacity.Index
	pods     *memberPods
	groups   *podGroups
	profiles *profiles.Set
	topology func(gang.ID, *v1.Pod) (gangview.Topology, error)

	byID    map[gang.ID]*waitingGang
	byShape map[capacity.ShapeKey]map[gang.ID]bool
	// excluded holds the gangs that the account rules out, in the order in which to look at them again.
	excluded []gang.ID
	// mostPriority is the highest priority of a gang that waits and whose priority counts, less than any if there is none.
	mostPriority atomic.Int64
}

func newWaitlist() *waitlist {
	l := &waitlist{byID: map[gang.ID]*waitingGang{}, byShape: map[capacity.ShapeKey]map[gang.ID]bool{}}
	l.count()
	return l
}

// set takes in what the ledger says of a gang that waits.
func (l *waitlist) set(waits gang.Waiting, now time.Time) *waitingGang {
	g, known := l.describe(waits), l.byID[waits.ID]
	g.restUntil = now.Add(time.Duration(max(len(g.Classes)-dryrun.ManyClasses, 0)) * describeRest)
	if known != nil {
		l.unindex(known)
		g.excluded, g.listed, g.describedAt = known.excluded, known.listed, known.describedAt
	}
	l.index(g)
	switch {
	case known != nil && known.backoff.until.Equal(g.RetryAt):
		g.backoff = known.backoff
	case g.RetryAt.After(now):
		g.backoff = backoff{since: now, until: g.RetryAt, misjudged: l.roomy(g)}
	}
	if g.backoff.ended {
		g.RetryAt = now
	}
	return g
}

func (l *waitlist) index(g *waitingGang) {
	l.byID[g.ID] = g
	for _, s := range g.shapes {
		if l.byShape[s.Shape] == nil {
			l.byShape[s.Shape] = map[gang.ID]bool{}
		}
		l.byShape[s.Shape][g.ID] = true
	}
}

func (l *waitlist) unindex(g *waitingGang) {
	for _, s := range g.shapes {
		if delete(l.byShape[s.Shape], g.ID); len(l.byShape[s.Shape]) == 0 {
			delete(l.byShape, s.Shape)
		}
		l.headroom.Release(s.Shape)
	}
}

// drop forgets a gang that does not wait any more.
func (l *waitlist) drop(g *waitingGang) {
	l.unindex(g)
	delete(l.byID, g.ID)
}

// describe finds out what the gang needs.
func (l *waitlist) describe(waits gang.Waiting) *waitingGang {
	g := &waitingGang{Waiting: waits, needs: needsAnything}
	if l.headroom.AnyBelow(waits.Key.Priority) {
		g.needs |= needsEvictions
	}
	for _, c := range waits.Classes {
		pod := l.pods.pod(c.Example)
		g.pods = append(g.pods, pod)
		if pod == nil {
			continue
		}
		g.shapes = append(g.shapes, capacity.Need{Shape: l.headroom.Acquire(pod), Count: c.Count})
		g.needs |= l.needsOf(pod)
		g.near.add(pod)
		levels, err := l.topology(waits.ID, pod)
		if err != nil {
			g.misstated = gang.Told(err.Error())
		}
		g.required = levels.Required
	}
	return g
}

func (l *waitlist) needsOf(pod *v1.Pod) needs {
	var n needs
	filters := l.profiles.Traits(pod)
	if profiles.HasVolumes(pod) {
		n |= needsVolumes
	}
	if filters.Claims(pod) {
		n |= needsDevices
	}
	if filters.OrderMatters(pod) || podview.HasHostPorts(pod) {
		n |= needsPods
	}
	return n
}

// selective reports whether a gang waits to which it matters that pods come to nodes.
func (l *waitlist) selective() bool {
	for _, g := range l.byID {
		if !g.near.empty() {
			return true
		}
	}
	return false
}

// endBackoff ends the back-off of the gang that comes first of those that fit into what came free, and returns it. Back-offs are
// there for gangs that are tried again and again, not for others to overtake one whose capacity has come. For a gang that fitted by
// the account when its last attempt failed it ends only after the shortest back-off: the account may not know what keeps it from
// starting.
func (l *waitlist) endBackoff(gained []capacity.ShapeKey, shortest time.Duration, now time.Time) *waitingGang {
	var paused []*waitingGang
	for _, shape := range gained {
		for id := range l.byShape[shape] {
			g := l.byID[id]
			if g.RetryAt.After(now) && (!g.backoff.misjudged || now.Sub(g.backoff.since) >= shortest) {
				paused = append(paused, g)
			}
		}
	}
	slices.SortFunc(paused, firstByKey)
	for _, g := range paused[:min(len(paused), retryAtOnce)] {
		if l.roomy(g) {
			g.backoff.ended, g.RetryAt = true, now
			return g
		}
	}
	return nil
}

// firstByKey orders gangs as they are tried.
func firstByKey(a, b *waitingGang) int {
	switch {
	case a.Key.Less(b.Key):
		return -1
	case b.Key.Less(a.Key):
		return 1
	}
	return 0
}

// count brings mostPriority up to date. Gangs that are ordered by when they are due have no say.
func (l *waitlist) count() {
	most := int64(math.MinInt64)
	for _, g := range l.byID {
		if !g.Key.Ages {
			most = max(most, int64(g.Key.Priority))
		}
	}
	l.mostPriority.Store(most)
}

// comesBefore reports whether a gang waits that is more important than the pod, which is in no gang and has waited for capacity. What
// wakes such a pod wakes it at once; gangs are looked at some milliseconds later, and would have it evicted again. A pod that fails
// after it was filtered loses its nomination, so one for which others were evicted is let through: what replaces those would come
// before it, without end.
func (l *waitlist) comesBefore(pod *v1.Pod) bool {
	if int64(corev1helpers.PodPriority(pod)) >= l.mostPriority.Load() || pod.Status.NominatedNodeName != "" ||
		podview.BelongsToNode(pod) {
		return false
	}
	_, scheduled := podutil.GetPodCondition(&pod.Status, v1.PodScheduled)
	return scheduled != nil && scheduled.Status == v1.ConditionFalse
}
