package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"berth.dev/berth/hack/invariants"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/simulation/memapi"
)

// between is the fault of a gang that grows by steps and rests between two of them although nothing took a member.
const between = "a gang rests between two steps"

// growth knows what gangs that grow by steps have lost: what is left of a step may stay.
type growth struct {
	mu sync.Mutex
	// lost is when a gang last lost a member or changed, shaken when something last happened that may have kept members
	// of any gang from being bound, seen when a gang was last seen at rest on a step.
	lost, seen map[string]time.Time
	shaken     time.Time
}

func newGrowth() growth { return growth{lost: map[string]time.Time{}, seen: map[string]time.Time{}} }

// isSettled reports whether the pod counts as placed.
func isSettled(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded ||
		pod.Spec.NodeName != "" && !podview.Finished(pod) && pod.DeletionTimestamp == nil
}

// observe takes a change that the API has made. It is called with the API locked.
func (g *growth) observe(e memapi.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e.Type == memapi.Added {
		return
	}
	switch object := e.Object.(type) {
	case *v1.Pod:
		old, _ := e.Old.(*v1.Pod)
		if old == nil {
			old = object
		}
		if was, is := invariants.GangOf(old), invariants.GangOf(object); e.Type == memapi.Deleted || was != is ||
			isSettled(old) && !isSettled(object) {
			g.lost[was], g.lost[is] = time.Now(), time.Now()
		}
	case *v1.Node:
		g.shaken = time.Now()
	case *unstructured.Unstructured:
		if e.Type == memapi.Deleted || matters(e.Old, e.Object) {
			g.lost[object.GetName()] = time.Now()
		}
	}
}

// shake notes that something has happened to all gangs.
func (g *growth) shake() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shaken = time.Now()
}

// excused takes note of a gang at rest, on a step or not, and reports whether something may have kept it from one.
func (g *growth) excused(gang string, onStep bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if onStep {
		g.seen[gang] = time.Now()
	}
	return g.lost[gang].After(g.seen[gang]) || g.shaken.After(g.seen[gang])
}

// next is what a gang needs after the last step that it has taken, and whether it is on that, by the ladder itself and
// rung by rung.
func (t *team) next() (next invariants.Minimum, onStep bool) {
	at := t.minimum
	for {
		next = invariants.Minimum{Total: at.Total, Roles: maps.Clone(at.Roles)}
		switch by, err := strconv.Atoi(t.growBy); {
		case t.growBy == "double":
			next.Total *= 2
		case err == nil:
			next.Total += by
		default:
			for part := range strings.SplitSeq(t.growBy, ",") {
				role, number, _ := strings.Cut(part, "=")
				n, _ := strconv.Atoi(number)
				next.Total += n
				next.Roles[role] += n
			}
		}
		if total, _ := (&team{minimum: next, settled: t.settled, settledRoles: t.settledRoles}).lacks(); total > 0 {
			return next, t.settled == at.Total
		}
		at = next
	}
}

// grows returns a fault if a gang that grows by steps rests between two, or if its next step has room and waits.
func (w *world) grows(teams map[string]*team, rooms []*vacancy) *invariants.Fault {
	waiting := keptFor(teams)
	w.addLabelled(waiting)
	for _, name := range slices.Sorted(maps.Keys(teams)) {
		t := teams[name]
		if total, _ := t.lacks(); t.growBy == "" || !t.started || !t.told || total > 0 {
			continue
		}
		next, onStep := t.next()
		if !w.growth.excused(name, onStep) && !onStep && w.weather.lostPercent == 0 {
			return &invariants.Fault{Kind: between,
				Detail: fmt.Sprintf("gang %s: %d of a minimum of %d by %s", name, t.settled, t.minimum.Total, t.growBy)}
		}
		step := *t
		step.minimum = next
		if len(t.pending) > 0 && !t.near && !w.excused(waiting, t.pending...) && !w.stands(teams, t, rooms) &&
			w.starts(&step, rooms) {
			return &invariants.Fault{Kind: overlooked,
				Detail: fmt.Sprintf("gang %s: its next step has room (%s)", name, w.reason(t.pending[0]))}
		}
	}
	return nil
}
