package coscheduling

import (
	"maps"
	"slices"
	"time"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/podview"
)

// ruleOut returns why the gang cannot start by the account of the cluster, whatever a cycle would find, and nil if it may.
// What evictions might free counts as free, and what pods hold that terminate.
func (w *waker) ruleOut(g *waitingGang) gang.Reason {
	if g.misstated != nil {
		// It would be said by a cycle as well, but there is none as long as the gang has no room.
		return g.misstated
	}
	if w.roomy(g) {
		return nil
	}
	if w.headroom.makesWay(g.Key.Priority) && w.mayFit(g, true) {
		return nil
	}
	if id, _ := w.reservations.turns.Current(); id == g.ID && w.reservations.ready {
		// What runs where room is kept for it makes way.
		return nil
	}
	if lacks := w.lacks(g, false); len(lacks) > 0 {
		return missing{g.ID, lacks}
	}
	turn := gang.Turn{Of: g.Of, Need: g.Need, Held: g.Held}
	result := gang.Result{Need: g.Need, Assignments: make([]gang.Assignment, w.headroom.best(g.shapes, g.required, nil, false))}
	for i, c := range g.Classes {
		turn.Members = append(turn.Members, make([]gang.Member, c.Count)...)
		if fits := w.headroom.best(g.shapes[i:i+1], g.required, nil, false); fits < c.Count {
			result.Short = append(result.Short, gang.Shortage{Class: c.Class, Wanted: c.Count, Fits: fits})
		}
	}
	var causes []gang.NodeCause
	if len(result.Short) > 0 {
		for i, c := range g.Classes {
			if c.Class == result.Short[0].Class {
				causes = w.headroom.causes(g.shapes[i].shape)
				break
			}
		}
	}
	within := ""
	if len(g.required) > 0 {
		within = g.required[len(g.required)-1]
	}
	describe := func(class string) string {
		for i, c := range g.Classes {
			if c.Class == class {
				return podview.DescribeRequest(g.pods[i])
			}
		}
		return "pod"
	}
	return gang.NewShortfall(g.ID, turn, result, describe, within, causes)
}

// roomy reports whether the gang may fit into what is free. Of a pod that has just gone nothing is known.
func (w *waker) roomy(g *waitingGang) bool {
	return len(g.shapes) < len(g.Classes) || w.mayFit(g, false)
}

// mayFit reports whether the gang may fit into what is free or, with empty set, into the cluster if no pod ran in it.
func (w *waker) mayFit(g *waitingGang, empty bool) bool {
	if w.headroom.best(g.shapes, g.required, nil, empty) < g.Need.Total || len(w.lacks(g, empty)) > 0 {
		return false
	}
	for role, need := range g.Need.Roles {
		var shapes []shapeNeed
		for i, c := range g.Classes {
			if c.Role == role {
				shapes = append(shapes, g.shapes[i])
			}
		}
		if w.headroom.best(shapes, g.required, nil, empty) < need {
			return false
		}
	}
	return true
}

// lacks returns the resources of the gang's minResources of which too little is free. The account does not tell what the
// gang's own members hold, so a gang that has some is given the benefit of the doubt.
func (w *waker) lacks(g *waitingGang, empty bool) []gang.Amount {
	wanted := minResources(w.groups.get(g.ID))
	if len(wanted) == 0 || g.Held > 0 {
		return nil
	}
	var amounts []gang.Amount
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if claimed(w.profiles.one(), name) {
			continue
		}
		free, whole := w.headroom.sum(name)
		if empty {
			free = whole
		}
		amounts = append(amounts, gang.Amount{Resource: string(name), Wanted: wanted[name], Free: free})
	}
	return gang.Lacking(amounts)
}

// reword looks again at the gangs that were ruled out, those first that were not looked at for the longest time: what they lack
// changes with every pod that comes, which is nothing to try them for. Those that the account has not changed for are looked at a
// few at a time, for what is not in the account.
func (w *waker) reword(now time.Time) {
	if now.Sub(w.rewordedAt) < rewordEvery {
		return
	}
	w.rewordedAt = now
	state, began := w.headroom.state(), time.Now()
	for looked := range len(w.ruledOut) {
		id := w.ruledOut[0]
		g := w.waiting[id]
		unchanged := g == nil || !g.ruledOut || g.worded == state
		if looked >= rewordAtOnce && (unchanged || time.Since(began) >= rewordFor) {
			return
		}
		w.ruledOut = w.ruledOut[1:]
		if g == nil || !g.ruledOut {
			if g != nil {
				g.listed = false
			}
			continue
		}
		g.worded = state
		if reason := w.ruleOut(g); reason != nil {
			w.ledger.RuleOut(id, reason, now)
		} else {
			w.rounds.Touch(id, now)
		}
		w.ruledOut = append(w.ruledOut, id)
	}
}
