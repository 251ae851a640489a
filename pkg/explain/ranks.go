package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang/ranks"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/read/numbering"
)

// addRanks adds the ranks of the members and the domains of their nodes to a plan.
func (w *world) addRanks(g *Gang, levels read.Topology, members []*v1.Pod) {
	g.SegmentSize, g.Level = levels.Segment.Size, cmp.Or(g.Level, levels.Segment.Level)
	if named := levels.Levels(); g.Level == "" && len(named) > 0 {
		g.Level = named[len(named)-1]
	}
	var names []string
	var indices []ranks.Index
	for _, pod := range members {
		if index, numbered := numbering.IndexOf(pod); numbered {
			names, indices = append(names, pod.Name), append(indices, index)
		}
	}
	numbers := ranks.Number(indices)
	for i := range g.Assignments {
		a := &g.Assignments[i]
		if at := slices.Index(names, a.Pod); at >= 0 {
			a.Rank = &numbers[at]
		}
		if info, err := w.fw.SnapshotSharedLister().NodeInfos().Get(a.Node); err == nil && g.Level != "" {
			a.Domain = info.Node().Labels[g.Level]
		}
	}
	slices.SortStableFunc(g.Assignments, func(a, b Assignment) int {
		if a.Rank == nil || b.Rank == nil {
			return 0
		}
		return cmp.Compare(*a.Rank, *b.Rank)
	})
}

// rankRanges writes the ranks of members, in their order, as "0-7, 9"; empty if they have none.
func rankRanges(of []Assignment) string {
	var text strings.Builder
	for i := 0; i < len(of); i++ {
		if of[i].Rank == nil {
			return ""
		}
		first := *of[i].Rank
		for i+1 < len(of) && of[i+1].Rank != nil && *of[i+1].Rank == *of[i].Rank+1 {
			i++
		}
		if text.Len() > 0 {
			text.WriteString(", ")
		}
		fmt.Fprint(&text, first)
		if last := *of[i].Rank; last > first {
			fmt.Fprintf(&text, "-%d", last)
		}
	}
	return text.String()
}
