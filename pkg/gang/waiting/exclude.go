package waiting

import (
	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/plan"
	"berth.dev/berth/pkg/obstacle"
	"berth.dev/berth/pkg/podview"
)

// Excludes reports whether the gang cannot start by the account of free capacity, whatever a cycle would find. What
// evictions might free counts as free, and what pods hold that terminate.
func (l *List) Excludes(g *Gang) bool {
	return g.Misstated != nil ||
		!l.roomy(g) && (!l.Capacity.Cluster.MakesWay(g.Key.Priority) || !l.MayFit(g, true))
}

// Why returns what the account says of a gang that it excludes. It looks at all nodes.
func (l *List) Why(g *Gang) obstacle.Reason {
	if g.Misstated != nil {
		// It would be said by a cycle as well, but there is none as long as there is no capacity for the gang.
		return g.Misstated
	}
	kept, required := l.Kept(g.ID, g.Pods), g.Levels.Required
	turn, asks := gang.Turn{Of: g.Of, Need: g.Need, Held: g.Held}, map[string]string{}
	result := plan.Result{
		Assignments: make([]gang.Assignment, l.Capacity.BestBeside(g.Shapes, required, nil, kept))}
	var nodes obstacle.Nodes
	for i, c := range g.Classes {
		turn.Members = append(turn.Members, make([]gang.Member, c.Count)...)
		fits := l.Capacity.BestBeside(g.Shapes[i:i+1], required, nil, kept)
		if fits >= c.Count {
			continue
		}
		if len(result.Short) == 0 {
			nodes = l.Capacity.Causes(g.Shapes[i].Shape, required, kept, l.Profiles.Traits(g.Pods[i]).Unfit(g.Pods[i]))
		}
		result.Short = append(result.Short, plan.Shortage{Class: c.Class, Wanted: c.Count, Fits: fits})
		asks[c.Class] = podview.DescribeRequest(g.Pods[i])
	}
	within := ""
	if len(required) > 0 {
		within = required[len(required)-1]
	}
	return plan.NewShortfall(g.ID, turn, result, func(class string) string { return asks[class] }, within, nodes)
}

// roomy reports whether the gang may fit into what is free and not kept for others. Of a pod that has just gone nothing
// is known.
func (l *List) roomy(g *Gang) bool {
	if len(g.Shapes) < len(g.Classes) {
		return true
	}
	if !l.MayFit(g, false) {
		return false
	}
	kept := l.Kept(g.ID, g.Pods)
	return len(kept) == 0 || fits(g, func(needs []capacity.Need) int {
		return l.Capacity.BestBeside(needs, g.Levels.Required, nil, kept)
	})
}

// MayFit reports whether the gang may fit into what is free or, with empty set, into the cluster if no pod ran in it.
func (l *List) MayFit(g *Gang, empty bool) bool {
	return fits(g, func(needs []capacity.Need) int {
		return l.Capacity.Best(needs, g.Levels.Required, nil, empty)
	})
}

// fits reports whether the minimum of the gang fits, as a whole and of each role. best returns how many of the needed
// pods fit.
func fits(g *Gang, best func([]capacity.Need) int) bool {
	if best(g.Shapes) < g.Need.Total {
		return false
	}
	for role, need := range g.Need.Roles {
		var shapes []capacity.Need
		for i, c := range g.Classes {
			if c.Role == role {
				shapes = append(shapes, g.Shapes[i])
			}
		}
		if best(shapes) < need {
			return false
		}
	}
	return true
}
