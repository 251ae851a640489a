package explain

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"berth.dev/berth/pkg/screen/tables"
)

// exampleNodes is how many nodes are named if many were rejected for the same reason.
const exampleNodes = 3

// page is the text of an explanation for a screen. Top bounds the rows of scored nodes; with 0 every node has its own
// row.
type page struct {
	strings.Builder
	screen tables.Screen
	top    int
}

// line adds a line, wrapped to the width of the screen.
func (p *page) line(format string, args ...any) {
	p.WriteString(p.screen.Wrap(fmt.Sprintf(format, args...)) + "\n")
}

// WriteTable prints the explanation: the best nodes with their points by plugin, nodes with equal points in one row,
// and the rejected nodes by reason. Top bounds the rows of scored nodes; with 0 every node has its own row.
func (e *Explanation) WriteTable(out io.Writer, top int) error {
	p := &page{screen: tables.ScreenOf(out), top: top}
	state := e.State
	if e.BoundTo != "" {
		state += " to " + e.BoundTo
	}
	p.line("%s\n\npod %s, %s, profile %s of %s", e.Verdict, e.Pod, state, e.Profile, e.Configuration)
	if e.Share != "" {
		p.line("its share of a GPU on %s is %s", cmp.Or(e.BoundTo, e.Winner), e.Share)
	}
	if e.Gang != nil {
		p.gang(e.Gang)
	}
	if e.Late != "" {
		p.line("%s", e.Late)
	}
	for _, r := range e.PreEnqueue {
		if e.Gang == nil {
			p.line("kept out of the queue by %s: %s", r.Plugin, strings.Join(r.Reasons, ", "))
		}
	}
	scored := e.scored()
	if len(scored) > 0 {
		p.scores(scored, e.Winner)
	}
	for _, n := range e.NotScored {
		p.line("not scored by %s: %s", n.Plugin, n.Why)
	}
	if e.RunnerUp != nil {
		p.runnerUp(e.RunnerUp)
	}
	if len(scored) < len(e.Nodes) {
		p.rejections(e.Nodes[len(scored):])
	}
	if len(e.Closest) > 0 && e.Closest[0].Largest == "" {
		p.closest(e.Closest)
	}
	if e.Preemption != nil && e.Preemption.Message != "" {
		p.line("\npreemption: %s", strings.TrimPrefix(e.Preemption.Message, "preemption: "))
	}
	if e.Preemption != nil {
		p.losses(e.Preemption)
	}
	for _, note := range e.Notes {
		p.line("note: %s", note)
	}
	if _, err := io.WriteString(out, p.String()); err != nil {
		return fmt.Errorf("printing the explanation: %w", err)
	}
	return nil
}

func (e *Explanation) scored() []Node {
	i := slices.IndexFunc(e.Nodes, func(n Node) bool { return n.Rejected != nil })
	if i < 0 {
		return e.Nodes
	}
	return e.Nodes[:i]
}

// gang prints the state of a gang and its plan.
func (p *page) gang(g *Gang) {
	var counts []string
	for _, state := range []struct {
		pods int
		name string
	}{{g.Bound, "bound"}, {g.Pending, "pending"}, {g.Gated, "gated"}, {g.Ended, "ended"}} {
		if state.pods > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", state.pods, state.name))
		}
	}
	together := "nothing says how many start together"
	if g.MinMember > 0 {
		together = fmt.Sprintf("at least %d together", g.MinMember)
	}
	if len(counts) > 0 {
		together += "; " + strings.Join(counts, ", ")
	}
	p.line("gang %s: %s", g.Name, together)
	if g.Reserved != "" {
		on := g.ReservedNodes
		if p.top > 0 && len(on) > exampleNodes {
			on = append(slices.Clone(on[:exampleNodes]), "…")
		}
		p.line("%s: %s", g.Reserved, cmp.Or(strings.Join(on, " "), "their names are not known"))
	}
	if g.Late != "" {
		p.line("%s", g.Late)
	}
	if g.Groups != "" {
		p.line("groups: %s", g.Groups)
	}
	if g.SegmentSize > 0 {
		p.line("each %d consecutive ranks share %s", g.SegmentSize, g.Level)
	}
	p.plan(g)
	if g.Bound == 0 {
		p.line("the table ignores the gang and shows this pod alone")
	}
}

// plan has a row for each node of a gang's plan.
func (p *page) plan(g *Gang) {
	byNode := map[string][]Assignment{}
	var planned []string // by their lowest rank
	for _, a := range g.Assignments {
		if byNode[a.Node] == nil {
			planned = append(planned, a.Node)
		}
		byNode[a.Node] = append(byNode[a.Node], a)
	}
	if len(planned) == 0 {
		return
	}
	shown := len(planned)
	if p.top > 0 {
		shown = min(shown, p.top)
	}
	columns, numbered := []tables.Column{{Name: "planned on"}}, rankRanges(g.Assignments) != ""
	if g.Level != "" {
		columns = append(columns, tables.Column{Name: path.Base(g.Level)})
	}
	if numbered {
		columns = append(columns, tables.Column{Name: "ranks"})
	} else {
		slices.Sort(planned)
	}
	t := tables.New(p.screen, append(columns, tables.Column{Name: "members"})...)
	for _, node := range planned[:shown] {
		of := byNode[node]
		row, names := []any{node}, make([]string, len(of))
		for i, a := range of {
			names[i] = a.Pod
		}
		if g.Level != "" {
			row = append(row, of[0].Domain)
		}
		if numbered {
			row = append(row, rankRanges(of))
		}
		t.Row(append(row, strings.Join(names, ", "))...)
	}
	p.WriteString("\n" + t.String())
	if shown < len(planned) {
		p.line("… and %d more nodes (berth explain --all-nodes)", len(planned)-shown)
	}
}

// scores has a row for each group of nodes with equal scores, and a column for each plugin whose scores differ between
// nodes. Below it are the terms of plugins, for the same nodes.
func (p *page) scores(nodes []Node, winner string) {
	rows := alikeInRow(nodes, p.top == 0)
	shown := rows
	if p.top > 0 {
		shown = rows[:min(p.top, len(rows))]
	}
	var differing []int
	var same []string
	for i, s := range nodes[0].Scores {
		if len(nodes) > 1 && spread(nodes, i) == 0 {
			if s.Weighted != 0 {
				same = append(same, fmt.Sprintf("%s %d", s.Plugin, s.Weighted))
			}
			continue
		}
		differing = append(differing, i)
	}
	// On a narrow screen the plugins with the smallest differences are left out.
	slices.SortStableFunc(differing, func(a, b int) int { return cmp.Compare(spread(nodes, b), spread(nodes, a)) })
	p.WriteString("\n")
	p.points(shown, differing, winner)
	hidden := len(nodes)
	for _, of := range shown {
		hidden -= len(of)
	}
	if hidden > 0 {
		p.line("… and %d more of the %d nodes that it fits (berth explain --all-nodes)", hidden, len(nodes))
	}
	if len(differing) > 0 {
		p.line("in points: 0 to 100 of each plugin, times its weight")
	}
	if len(same) > 0 {
		p.line("points that are the same for all nodes: %s", strings.Join(same, ", "))
	}
	for i := range nodes[0].Scores {
		p.costs(shown, i, winner)
	}
}

// points has a row for each group of nodes and a column for each plugin.
func (p *page) points(rows [][]Node, plugins []int, winner string) {
	names, others := make([]string, len(rows)), make([]int, len(rows))
	for i, of := range rows {
		names[i], others[i] = of[0].Name, len(of)-1
	}
	columns := []tables.Column{{Name: "total", Number: true}}
	for n, i := range plugins {
		s := &rows[0][0].Scores[i]
		columns = append(columns, tables.Column{Name: fmt.Sprintf("%s ×%d", s.Plugin, s.Weight), Number: true, Extra: n > 0})
	}
	p.perNode(names, others, winner, columns, func(row int) []any {
		cells := []any{rows[row][0].Total}
		for _, i := range plugins {
			cells = append(cells, rows[row][0].Scores[i].Weighted)
		}
		return cells
	})
}

// perNode adds a table with a row for each node, the winner in color, and the number of equal nodes if there are any.
func (p *page) perNode(names []string, others []int, winner string, columns []tables.Column,
	cells func(row int) []any) {
	first := []tables.Column{{Name: "node"}}
	alike := slices.Max(others) > 0
	if alike {
		first = append(first, tables.Column{Name: "like it", Number: true})
	}
	t := tables.New(p.screen, append(first, columns...)...)
	for i, name := range names {
		if name == winner {
			name = p.screen.Paint(tables.Green, name)
		}
		row := []any{name}
		if alike {
			row = append(row, others[i])
		}
		t.Row(append(row, cells(i)...)...)
	}
	p.WriteString(t.String())
}

// spread is the difference between the most and the fewest points of a plugin.
func spread(nodes []Node, plugin int) int64 {
	least, most := nodes[0].Scores[plugin].Weighted, nodes[0].Scores[plugin].Weighted
	for i := range nodes {
		least, most = min(least, nodes[i].Scores[plugin].Weighted), max(most, nodes[i].Scores[plugin].Weighted)
	}
	return most - least
}

// alikeInRow groups nodes with the same scores and terms in a row, or puts every node into its own row.
func alikeInRow(nodes []Node, apart bool) [][]Node {
	var rows [][]Node
	at := map[string]int{}
	for _, n := range nodes {
		key := fmt.Sprint(n.Scores)
		i, known := at[key]
		if !known || apart {
			i = len(rows)
			at[key] = i
			rows = append(rows, nil)
		}
		rows[i] = append(rows[i], n)
	}
	return rows
}

// points writes a number of points.
func points(n int64) string {
	if n == 1 {
		return "1 point"
	}
	return fmt.Sprintf("%d points", n)
}

// rejections has a row for each reason, the most frequent first.
func (p *page) rejections(nodes []Node) {
	type rejection struct{ plugin, reasons string }
	named := map[rejection][]string{}
	for _, n := range nodes {
		by := rejection{n.Rejected.Plugin, strings.Join(n.Rejected.Reasons, "; ")}
		named[by] = append(named[by], n.Name)
	}
	order := slices.SortedFunc(maps.Keys(named), func(a, b rejection) int {
		return cmp.Or(cmp.Compare(len(named[b]), len(named[a])), cmp.Compare(a.plugin, b.plugin),
			cmp.Compare(a.reasons, b.reasons))
	})
	t := tables.New(p.screen, tables.Column{Name: "nodes", Number: true}, tables.Column{Name: "rejected by"},
		tables.Column{Name: "because"},
		tables.Column{Name: "which", Extra: true})
	for _, by := range order {
		which := named[by]
		if p.top > 0 && len(which) > exampleNodes {
			which = append(slices.Clone(which[:exampleNodes]), "…")
		}
		t.Row(len(named[by]), p.screen.Paint(tables.Red, by.plugin), by.reasons, strings.Join(which, " "))
	}
	p.WriteString("\n" + t.String())
}

// closest lists the nodes with the smallest shortfall.
func (p *page) closest(nodes []Shortfall) {
	t := tables.New(p.screen, tables.Column{Name: "closest to fitting"}, tables.Column{Name: "resource"},
		tables.Column{Name: "free", Number: true},
		tables.Column{Name: "needed", Number: true})
	for _, c := range nodes {
		t.Row(c.Node, c.Resource, c.Free, c.Needs)
	}
	p.WriteString("\n" + t.String())
}

// runnerUp says what would have to change for the runner-up to win, and which plugins score the nodes differently.
func (p *page) runnerUp(r *RunnerUp) {
	text := fmt.Sprintf("\nfor %s to win, it needs more than %s", r.Node, points(r.Margin))
	for i, c := range r.Changes {
		if i == 0 {
			text += ","
		}
		text += " or " + c.String()
	}
	p.line("%s", text)
	if len(r.Differences) == 0 {
		return
	}
	t := tables.New(p.screen, tables.Column{Name: "plugin"}, tables.Column{Name: "winner", Number: true},
		tables.Column{Name: "runner-up", Number: true},
		tables.Column{Name: "points", Number: true})
	for _, d := range r.Differences {
		t.Row(fmt.Sprintf("%s ×%d", d.Plugin, d.Weight), d.Winner, d.RunnerUp, fmt.Sprintf("%+d", d.Points))
	}
	p.WriteString(t.String())
	for _, d := range r.Differences {
		if d.Why != "" {
			p.line("%s: %s", d.Plugin, d.Why)
		}
	}
}
