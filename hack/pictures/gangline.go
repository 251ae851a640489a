package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"berth.dev/berth/pkg/svg"
)

// before and after are the seconds that are shown before the gang came and after it has started.
const before, after = 2.0, 3.0

// drawGang draws what each node did, and above it what the scheduler said of the gang.
func drawGang(r *recording) string {
	members, end := startOf(r)
	planned, reserved, told := r.said("needs "), r.said("reserved, on which"), r.said("kept for gang")
	// The group's status is written at a pace. What other pods were told may come before it.
	if told.Text != "" {
		reserved.At = min(reserved.At, told.At)
	}
	took := math.Ceil(max(1, 1000*(end-members[0])))
	line := svg.TimeLine{
		Begin: -before, End: end + after,
		Moments: []svg.Moment{
			{At: planned.At, Name: "plan", Words: planned.Text},
			{At: reserved.At, Name: "reserve", Words: reserved.Text},
			{At: members[0], Name: "bind", Words: fmt.Sprintf("%d of %d members within %.0f ms", len(members), gangMembers, took)},
		},
		Legend: []svg.Span{
			{Class: "busy", Title: "small jobs, one a node"}, {Class: "row", Title: "free"},
			{Class: "kept", Title: "kept for the gang"}, {Class: "own", Title: "the gang, four nodes"},
		},
		Format: func(seconds float64) string { return fmt.Sprintf("%g s", math.Round(10*seconds)/10) },
	}
	for _, node := range slices.Sorted(maps.Keys(nodesOf(r))) {
		row := svg.TimeRow{Name: node}
		for _, p := range nodesOf(r)[node] {
			until, class := p.Ended, "busy"
			if until < 0 {
				until = end + after
			}
			if p.member() {
				class = "own"
				if from := max(lastEnd(r, node, p.Bound), reserved.At); from < p.Bound && reserved.Text != "" {
					row.Spans = append(row.Spans, svg.Span{From: from, To: p.Bound, Class: "kept", Title: node + ": kept for the gang"})
				}
			}
			row.Spans = append(row.Spans, svg.Span{From: p.Bound, To: until, Class: class, Title: p.Name})
		}
		line.Rows = append(line.Rows, row)
	}
	c := &canvas{width: 960, height: line.Height() + 20, style: timeLineStyle}
	line.Draw(&c.body)
	if told.Text != "" {
		sentence, _, _ := strings.Cut(told.Text, ". ")
		c.text(0, line.Height()+14, "s", "start", "A small job that waits: "+sentence)
	}
	return c.document("A gang in a run: planned, then nodes are reserved, then all members are bound")
}

// startOf is when each member was bound, in order, and when all were.
func startOf(r *recording) (bound []float64, all float64) {
	for _, p := range r.pods {
		if p.member() {
			bound = append(bound, p.Bound)
		}
	}
	slices.Sort(bound)
	return bound, bound[len(bound)-1]
}

// nodesOf are the pods of each node in the order in which they came.
func nodesOf(r *recording) map[string][]*podRun {
	nodes := map[string][]*podRun{}
	for _, p := range r.pods {
		if p.Node != "" {
			nodes[p.Node] = append(nodes[p.Node], p)
		}
	}
	for _, pods := range nodes {
		slices.SortFunc(pods, func(a, b *podRun) int { return cmp.Compare(a.Bound, b.Bound) })
	}
	return nodes
}

// lastEnd is when the last pod before a moment ended on a node.
func lastEnd(r *recording, node string, moment float64) float64 {
	last := 0.0
	for _, p := range nodesOf(r)[node] {
		if p.Ended >= 0 && p.Ended <= moment {
			last = max(last, p.Ended)
		}
	}
	return last
}

// said is what was first said with these words, in a condition or an event.
func (r *recording) said(words string) note {
	for _, n := range r.notes {
		if strings.Contains(n.Text, words) {
			return n
		}
	}
	return note{}
}
