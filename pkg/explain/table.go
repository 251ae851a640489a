package explain

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// exampleNodes is how many nodes are named where many were rejected for the same reason.
const exampleNodes = 3

// WriteTable prints the explanation for people: the best nodes with what each plugin gave them, those that are given the same in
// one row, and the rejected nodes by reason. Top bounds the rows of scored nodes; 0 prints every node by itself. Width is that of the
// terminal; 0 means that there is none to fit.
func (e *Explanation) WriteTable(out io.Writer, top, width int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\npod %s, %s, profile %s of %s\n%s\n", e.Why, e.Pod, e.State, e.Profile, e.Configuration, e.Verdict)
	if e.Share != "" {
		fmt.Fprintf(&b, "its share of a GPU on %s is %s\n", cmp.Or(e.BoundTo, e.Winner), e.Share)
	}
	e.writeGang(&b, top)
	for _, h := range e.Held {
		if e.Gang == nil {
			fmt.Fprintf(&b, "kept out of the queue by %s: %s\n", h.Plugin, strings.Join(h.Reasons, ", "))
		}
	}
	scored := e.scored()
	if len(scored) > 0 {
		b.WriteString("\n" + scoreTable(scored, top, width))
	}
	for _, n := range e.NotScored {
		fmt.Fprintf(&b, "not scored by %s: %s\n", n.Plugin, n.Why)
	}
	if r := e.RunnerUp; r != nil {
		r.write(&b)
	}
	if len(scored) < len(e.Nodes) {
		b.WriteString("\n" + rejectionTable(e.Nodes[len(scored):], top == 0, width))
	}
	for i, c := range e.Closest {
		if i == 0 {
			b.WriteString("\nclosest to fitting:\n")
		}
		fmt.Fprintf(&b, "  %s has %s of the %s %s\n", c.Node, c.Free, c.Needs, c.Resource)
	}
	if p := e.Preemption; p != nil && p.Message != "" {
		fmt.Fprintf(&b, "\npreemption: %s\n", strings.TrimPrefix(p.Message, "preemption: "))
	}
	for _, note := range e.Notes {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func (e *Explanation) scored() []Node {
	i := slices.IndexFunc(e.Nodes, func(n Node) bool { return n.Rejected != nil })
	if i < 0 {
		return e.Nodes
	}
	return e.Nodes[:i]
}

func (e *Explanation) writeGang(b *strings.Builder, top int) {
	g := e.Gang
	if g == nil {
		return
	}
	if g.MinMember > 0 {
		fmt.Fprintf(b, "gang %s: at least %d together", g.Name, g.MinMember)
	} else {
		fmt.Fprintf(b, "gang %s: nothing says how many start together", g.Name)
	}
	separator := "; "
	for _, state := range []struct {
		pods int
		name string
	}{{g.Bound, "bound"}, {g.Pending, "pending"}, {g.Gated, "gated"}, {g.Ended, "ended"}} {
		if state.pods > 0 {
			fmt.Fprintf(b, "%s%d %s", separator, state.pods, state.name)
			separator = ", "
		}
	}
	b.WriteString("\n")
	byNode := map[string][]string{}
	for _, s := range g.Assignments {
		byNode[s.Node] = append(byNode[s.Node], s.Pod)
	}
	planned := slices.Sorted(maps.Keys(byNode))
	for i, node := range planned {
		if top > 0 && i == top {
			fmt.Fprintf(b, "  … and %d more nodes (--top, --all-nodes)\n", len(planned)-top)
			break
		}
		fmt.Fprintf(b, "  plan: %s: %s\n", node, strings.Join(byNode[node], ", "))
	}
	if g.Bound == 0 {
		b.WriteString("what is below is for this member by itself\n")
	}
}

func newTable() table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.Style().Format.Header = text.FormatDefault
	return t
}

// scoreTable has a row for the nodes that every plugin gives the same, with the first of them, and a column for each plugin that
// tells nodes apart. Below it are the terms of the plugins that have some, for the same nodes.
func scoreTable(nodes []Node, top, width int) string {
	rows := alikeInRow(nodes, top == 0)
	shown := rows
	if top > 0 {
		shown = rows[:min(top, len(rows))]
	}
	var telling []int
	var same []string
	for i, s := range nodes[0].Scores {
		if len(nodes) > 1 && alike(nodes, i) {
			if s.Weighted != 0 {
				same = append(same, fmt.Sprintf("%s %d", s.Plugin, s.Weighted))
			}
			continue
		}
		telling = append(telling, i)
	}
	// What tells least apart is left out where the terminal is too narrow.
	slices.SortStableFunc(telling, func(a, b int) int { return cmp.Compare(spread(nodes, b), spread(nodes, a)) })
	columns := telling
	out := pointsTable(shown, columns)
	for len(columns) > 1 && tooWide(out, width) {
		columns = columns[:len(columns)-1]
		out = pointsTable(shown, columns)
	}
	hidden := len(nodes)
	for _, of := range shown {
		hidden -= len(of)
	}
	if hidden > 0 {
		out += fmt.Sprintf("… and %d more of the %d nodes that it fits (--top, --all-nodes)\n", hidden, len(nodes))
	}
	if len(telling) > 0 {
		out += "in points: 0 to 100 of each plugin, times its weight\n"
	}
	if len(columns) < len(telling) {
		var left []string
		for _, i := range telling[len(columns):] {
			left = append(left, fmt.Sprintf("%s (%s apart at most)", nodes[0].Scores[i].Plugin, points(spread(nodes, i))))
		}
		out += "not shown: " + strings.Join(left, ", ") + "\n"
	}
	if len(same) > 0 {
		out += "points that are the same for all nodes: " + strings.Join(same, ", ") + "\n"
	}
	for i := range nodes[0].Scores {
		if costs := costTable(shown, i, top == 0, width); costs != "" {
			out += "\n" + costs
		}
	}
	return out
}

// pointsTable has a row for each group of nodes and a column for each plugin.
func pointsTable(rows [][]Node, plugins []int) string {
	t := newTable()
	header := table.Row{"node", "total"}
	columns := []table.ColumnConfig{{Number: 2, Align: text.AlignRight}}
	for _, i := range plugins {
		s := &rows[0][0].Scores[i]
		header = append(header, fmt.Sprintf("%s ×%d", s.Plugin, s.Weight))
		columns = append(columns, table.ColumnConfig{Number: len(header), Align: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	t.AppendHeader(header)
	for _, of := range rows {
		row := table.Row{likeIt(of[0].Name, len(of)-1), of[0].Total}
		for _, i := range plugins {
			row = append(row, of[0].Scores[i].Weighted)
		}
		t.AppendRow(row)
	}
	return t.Render() + "\n"
}

// tooWide reports whether a line of the text is longer than the terminal is wide.
func tooWide(s string, width int) bool {
	for line := range strings.Lines(s) {
		if width > 0 && text.StringWidthWithoutEscSequences(strings.TrimRight(line, " \n")) > width {
			return true
		}
	}
	return false
}

// spread is how far the points of a plugin are apart.
func spread(nodes []Node, plugin int) int64 {
	least, most := nodes[0].Scores[plugin].Weighted, nodes[0].Scores[plugin].Weighted
	for i := range nodes {
		least, most = min(least, nodes[i].Scores[plugin].Weighted), max(most, nodes[i].Scores[plugin].Weighted)
	}
	return most - least
}

// alikeInRow puts nodes with the same scores and the same terms together, in the order of the best of them, or every node by itself.
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

// points counts them.
func points(n int64) string {
	if n == 1 {
		return "1 point"
	}
	return fmt.Sprintf("%d points", n)
}

// alike says whether the plugin gives all nodes the same points.
func alike(nodes []Node, plugin int) bool {
	for i := range nodes {
		if nodes[i].Scores[plugin].Weighted != nodes[0].Scores[plugin].Weighted {
			return false
		}
	}
	return true
}

// group is a set of nodes that one plugin rejects for the same reasons.
type group struct {
	rejection
	nodes []string
}

type rejection struct{ plugin, reasons string }

func rejectionTable(nodes []Node, all bool, width int) string {
	groups := map[rejection]*group{}
	for _, n := range nodes {
		by := rejection{n.Rejected.Plugin, strings.Join(n.Rejected.Reasons, "; ")}
		if groups[by] == nil {
			groups[by] = &group{rejection: by}
		}
		groups[by].nodes = append(groups[by].nodes, n.Name)
	}
	order := slices.SortedFunc(maps.Values(groups), func(a, b *group) int {
		return cmp.Or(cmp.Compare(len(b.nodes), len(a.nodes)), cmp.Compare(a.plugin, b.plugin), cmp.Compare(a.reasons, b.reasons))
	})
	t := newTable()
	t.AppendHeader(table.Row{"nodes", "rejected by", "because", "which"})
	if width > 0 {
		// What the two columns before take, and the spaces between all.
		rest := max(width-30, 30)
		t.SetColumnConfigs([]table.ColumnConfig{{Number: 3, WidthMax: rest * 3 / 5}, {Number: 4, WidthMax: rest * 2 / 5}})
	}
	for _, g := range order {
		which := g.nodes
		if !all && len(which) > exampleNodes {
			which = append(slices.Clone(which[:exampleNodes]), "…")
		}
		t.AppendRow(table.Row{len(g.nodes), g.plugin, g.reasons, strings.Join(which, " ")})
	}
	return t.Render() + "\n"
}

func (r *RunnerUp) write(b *strings.Builder) {
	fmt.Fprintf(b, "\nfor %s to win, it needs more than %s", r.Node, points(r.Margin))
	for i, c := range r.Changes {
		sep := ", or "
		if i > 0 {
			sep = " or "
		}
		b.WriteString(sep + c.String())
	}
	b.WriteString("\n")
	for _, d := range r.Differences {
		fmt.Fprintf(b, "  %s ×%d: %d against %d of 100, %+d points\n", d.Plugin, d.Weight, d.Winner, d.RunnerUp, d.Points)
		if d.Why != "" {
			fmt.Fprintf(b, "    %s\n", d.Why)
		}
	}
}
