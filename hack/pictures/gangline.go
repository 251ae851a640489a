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

// Sizes of the time line in pixels.
const (
	lineLeft, lineRight     = 70.0, 940.0
	lineTop, rowHeight, bar = 118.0, 26.0, 18.0
	before, after           = 2.0, 3.0 // seconds that are shown before the gang came and after it has started
)

// drawGang draws what each node did, and above it what the scheduler said of the gang.
func drawGang(r *recording) string {
	members, end := startOf(r)
	c := &canvas{width: 960, height: lineTop + gangNodes*rowHeight + 70}
	x := func(at float64) float64 {
		return lineLeft + (lineRight-lineLeft)*(min(max(at, -before), end+after)+before)/(end+after+before)
	}
	rect := func(from, to, row float64, fill string, title string) {
		fmt.Fprintf(&c.body, `<rect x="%.1f" y="%g" width="%.1f" height="%g" rx="2" fill="%s" stroke="#fff">`+
			`<title>%s</title></rect>`,
			x(from), lineTop+row*rowHeight, max(1, x(to)-x(from)), bar, fill, title)
	}
	planned, reserved, told := r.said("needs "), r.said("reserved, on which"), r.said("promised to gang")
	// The group's status is written at a pace. What other pods were told may come before it.
	if told.Text != "" {
		reserved.At = min(reserved.At, told.At)
	}
	bottom := lineTop + gangNodes*rowHeight
	for row, node := range slices.Sorted(maps.Keys(nodesOf(r))) {
		y := float64(row)
		c.text(0, lineTop+y*rowHeight+13, "s", "start", node)
		rect(-before, end+after, y, restFill, node+": free")
		for _, p := range nodesOf(r)[node] {
			until := p.Ended
			if until < 0 {
				until = end + after
			}
			color := "#b0bec5"
			if p.member() {
				color = svg.Color(1)
				if from := max(lastEnd(r, node, p.Bound), reserved.At); from < p.Bound && reserved.Text != "" {
					rect(from, p.Bound, y, "url(#kept)", node+": kept for the gang")
				}
			}
			rect(p.Bound, until, y, color, p.Name)
		}
	}
	took := math.Ceil(max(1, 1000*(end-members[0])))
	steps := []struct {
		at          float64
		name, words string
	}{
		{planned.At, "plan", planned.Text},
		{reserved.At, "reserve", reserved.Text},
		{members[0], "bind", fmt.Sprintf("%d of %d members within %.0f ms", len(members), gangMembers, took)},
	}
	for i, s := range steps {
		y := 12 + float64(i)*30
		fmt.Fprintf(&c.body, `<path d="M%.1f %gV%g" stroke="%s" stroke-dasharray="3 3"/>`, x(s.at), y+4, bottom, ink)
		anchor, at := "start", x(s.at)
		if at > lineLeft+(lineRight-lineLeft)/2 {
			anchor, at = "end", at+2
		}
		c.text(at, y, "b", anchor, fmt.Sprintf("%s, %.1f s", s.name, s.at))
		c.text(at+map[string]float64{"start": 6, "end": -6}[anchor], y+15, "s", anchor, s.words)
	}
	if told.Text != "" {
		sentence, _, _ := strings.Cut(told.Text, ". ")
		c.text(0, bottom+62, "s", "start", "A small job that waits: "+sentence)
	}
	for at := 0.0; at <= end+after; at += 5 {
		fmt.Fprintf(&c.body, `<path d="M%.1f %gv4" stroke="%s"/>`, x(at), bottom, faint)
		c.text(x(at), bottom+16, "s", "middle", fmt.Sprintf("%g s", at))
	}
	for i, item := range []struct{ fill, words string }{
		{"#b0bec5", "small jobs, one a node"}, {restFill, "free"},
		{"url(#kept)", "kept for the gang"}, {svg.Color(1), "the gang, four nodes"},
	} {
		at := lineLeft + float64(i)*190
		fmt.Fprintf(&c.body, `<rect x="%g" y="%g" width="12" height="12" fill="%s"/>`, at, bottom+32, item.fill)
		c.text(at+18, bottom+42, "s", "start", item.words)
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
