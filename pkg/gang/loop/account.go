package loop

import (
	"maps"
	"slices"
	"time"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/obstacle"
	"berth.dev/berth/pkg/gang/plan"
	"berth.dev/berth/pkg/gang/waiting"
	"berth.dev/berth/pkg/podview"
)

// endedAtOnce is how many gangs are looked at to end the back-off of one.
const endedAtOnce = 8

// excludes reports whether the gang cannot start by the account of free capacity, whatever a cycle would find. What
// evictions might free counts as free, and what pods hold that terminate. What runs on nodes that are reserved for the
// gang makes way once it fits there.
func (l *Loop) excludes(g *waiting.Gang) bool {
	if g.Misstated != nil {
		return true
	}
	return !l.Reservations.ReadyFor(g.ID) && !l.roomy(g) &&
		(!l.List.Capacity.Cluster.MakesWay(g.Key.Priority) || !l.List.MayFit(g, true))
}

// why returns what the account says of a gang that it excludes. It looks at all nodes.
func (l *Loop) why(g *waiting.Gang) obstacle.Reason {
	if g.Misstated != nil {
		// It would be said by a cycle as well, but there is none as long as there is no capacity for the gang.
		return g.Misstated
	}
	account, kept, required := l.List.Capacity, l.kept(g), g.Levels.Required
	demand, asks := gang.Demand{Minimum: g.Of, Need: g.Need, Placed: g.Held}, map[string]string{}
	result := plan.Result{Assignments: make([]gang.Assignment, account.BestBeside(g.Shapes, required, kept))}
	var nodes obstacle.Nodes
	for i, c := range g.Classes {
		demand.Members = append(demand.Members, make([]gang.Member, c.Count)...)
		fits := account.BestBeside(g.Shapes[i:i+1], required, kept)
		if fits >= c.Count {
			continue
		}
		if len(result.Short) == 0 {
			unfit := l.List.Profiles.Traits(g.Pods[i]).Unfit(g.Pods[i])
			nodes = account.Causes(g.Shapes[i].Shape, required, kept, unfit)
		}
		result.Short = append(result.Short, plan.Shortage{Class: c.Class, Wanted: c.Count, Fits: fits})
		asks[c.Class] = podview.DescribeRequest(g.Pods[i])
	}
	within := ""
	if len(required) > 0 {
		within = required[len(required)-1]
	}
	return plan.NewShortfall(g.ID, demand, result, func(class string) string { return asks[class] }, within, nodes)
}

// roomy reports whether the gang may fit into what is free and not kept for others. Of a pod that has just gone nothing
// is known.
func (l *Loop) roomy(g *waiting.Gang) bool {
	if len(g.Shapes) < len(g.Classes) {
		return true
	}
	if !l.List.MayFit(g, false) {
		return false
	}
	kept := l.kept(g)
	return len(kept) == 0 || g.Fits(func(needs []capacity.Need) int {
		return l.List.Capacity.BestBeside(needs, g.Levels.Required, kept)
	})
}

// misjudged reports whether the gang, whose attempt has just failed, fitted by the account. What came free since it was
// invited may be what it lacked.
func (l *Loop) misjudged(g *waiting.Gang) bool { return g.Roomy && l.roomy(g) }

// endBackoff ends the back-offs of the gangs that come first, where all of them fit beside each other, for which
// something came that they may have lacked: gained shapes, volumes or devices, or what a happening tells one alone,
// such as an address.
// Back-offs are there for gangs that are tried again and again, not for others to overtake one whose capacity has come.
// For a gang that fitted by the account when its last attempt failed it ends only after the shortest back-off: the
// account may not know what keeps it from starting. Until then no other back-off ends for what it may have lacked.
func (l *Loop) endBackoff(gained []capacity.ShapeKey, happenings map[waiting.Happening]bool, now time.Time) {
	helped := map[gang.ID]bool{}
	for _, shape := range gained {
		maps.Copy(helped, l.List.ByShape[shape])
	}
	for h := range happenings {
		helped[h.Only] = true
		if h.Kind&(waiting.NeedsVolumes|waiting.NeedsDevices) == 0 {
			continue
		}
		for id, g := range l.List.ByID {
			if h.Concerns(g) {
				helped[id] = true
			}
		}
	}
	var paused []*waiting.Gang
	for id := range helped {
		if g := l.List.ByID[id]; g != nil && g.RetryAt.After(l.soonest(g, now)) {
			paused = append(paused, g)
		}
	}
	slices.SortFunc(paused, waiting.FirstByKey)
	taken, ended := map[capacity.ShapeKey]int{}, false
	for _, g := range paused[:min(len(paused), endedAtOnce)] {
		if !l.roomy(g) {
			continue
		}
		if fits := l.fitsBeside(g, taken); ended && !fits {
			return
		}
		ended, g.Backoff.Ended = true, l.soonest(g, now)
		g.RetryAt = g.Backoff.Ended
		l.queue.Wait(g.ID, g.Key, g.RetryAt, now)
		if g.RetryAt.After(now) {
			return
		}
	}
}

// fitsBeside reports whether all of the gang that wait fit beside what is taken, each shape alone, and adds them.
func (l *Loop) fitsBeside(g *waiting.Gang, taken map[capacity.ShapeKey]int) bool {
	fits := true
	for _, s := range g.Shapes {
		taken[s.Shape] += s.Count
		slots, _ := l.List.Capacity.Slots(s.Shape)
		fits = fits && taken[s.Shape] <= slots
	}
	return fits
}

// soonest is when the gang may be tried again at the earliest.
func (l *Loop) soonest(g *waiting.Gang, now time.Time) time.Time {
	if at := g.Backoff.Since.Add(l.Backoff.Initial); g.Backoff.Misjudged && at.After(now) {
		return at
	}
	return now
}
