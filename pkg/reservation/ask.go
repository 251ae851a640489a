package reservation

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/starttime"
	"berth.dev/berth/pkg/tree"
	"berth.dev/berth/pkg/waitlist"
)

// board plans the starts of the gangs.
func (r *Reservations) board(ctx context.Context, p *timedPlan, now time.Time) []starttime.Reservation {
	nodes := make([]starttime.Node, len(p.nodes))
	for i := range p.nodes {
		nodes[i] = p.nodes[i].Node
	}
	p.asked = make([]starttime.Gang, len(p.gangs))
	for i, g := range p.gangs {
		percent := r.Search.Holders.percentByTime(g.ID.Namespace, g.Key.Priority)
		p.asked[i] = starttime.Gang{Name: g.ID.String(), Members: p.members(i),
			Run:    r.Search.Holds.Gate.Forecasts.Left(g.Pods[0], now),
			Waited: now.Sub(g.Since), MaxNodes: r.Search.List.Capacity.Cluster.Size() * percent / 100}
		if !g.Divided() {
			continue
		}
		var err error
		if p.asked[i].Tree, p.asked[i].Members, err = r.Search.divide(p, i); err != nil {
			// It has no start. Cycles tell the gang why.
			klog.FromContext(ctx).V(4).Info("Dividing a gang failed", "gang", g.ID, "err", err)
		}
	}
	return r.schedule.board.Plan(nodes, p.asked, now)
}

// divide poses which domains the groups or segments of the gang get. Its classes are the shapes of the gang, one row
// after the other.
func (s *Search) divide(p *timedPlan, i int) (*tree.Problem, []starttime.Members, error) {
	first := slices.Min(p.at[i])
	nodes := make([]*v1.Node, len(p.nodes))
	for n := range p.nodes {
		nodes[n] = p.nodes[n].Object
	}
	posed, err := s.outline(p.gangs[i], func(class int) int { return p.at[i][class] - first }, p.together[first], nodes)
	if err != nil {
		return nil, nil, err
	}
	members := make([]starttime.Members, len(posed.Asks))
	for class := range members {
		members[class].Shape = first + class
	}
	return posed, members, nil
}

// outline poses which domains the groups or segments of the gang get. number says which classes ask for the same, and
// asks what that is; nil if all do.
func (s *Search) outline(g *waitlist.Gang, number func(class int) int, asks [][]int64,
	nodes []*v1.Node) (*tree.Problem, error) {
	classes := map[string]int{}
	for c, class := range g.Classes {
		classes[class.Class] = number(c)
	}
	for i, node := range nodes {
		if node == nil {
			nodes[i] = &v1.Node{} // it has just gone, and is in no domain
		}
	}
	posed, err := s.Sets.Outline(g.ID, g.Levels, g.Need, s.Sets.Waiting(g.ID), classes, nodes)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says which pod
	}
	if asks != nil {
		posed.Asks = asks
	}
	return &posed.Problem, nil
}

// members are what a gang lacks to its minimum, those first for which there is the least capacity.
func (p *timedPlan) members(i int) []starttime.Members {
	g := p.gangs[i]
	total, roles, taken := g.Need.Total, maps.Clone(g.Need.Roles), make([]int, len(g.Classes))
	for c, class := range g.Classes {
		n := min(class.Count, roles[class.Role])
		if n > 0 {
			roles[class.Role] -= n
		}
		taken[c] = max(n, 0)
		total -= taken[c]
	}
	byRow := map[int]int{}
	for c, class := range g.Classes {
		more := min(class.Count-taken[c], max(total, 0))
		total -= more
		if taken[c]+more > 0 {
			byRow[p.at[i][c]] += taken[c] + more
		}
	}
	var out []starttime.Members
	fits := map[int]int{}
	for _, row := range slices.Sorted(maps.Keys(byRow)) {
		out = append(out, starttime.Members{Shape: row, Count: byRow[row]})
		for n := range p.nodes {
			all := p.nodes[n].Fits[row]
			fits[row] += all[len(all)-1]
		}
	}
	slices.SortStableFunc(out, func(a, b starttime.Members) int { return cmp.Compare(fits[a.Shape], fits[b.Shape]) })
	return out
}
