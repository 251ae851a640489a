package explain

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"berth.dev/berth/pkg/tables"
)

// exampleNodes is how many nodes are named where many were rejected for the same reason.
const exampleNodes = 3

// WriteTable prints the explanation for people: the best nodes with what each plugin gave them, those that are given the same in
// one row, and the rejected nodes by reason. Top bounds the rows of scored nodes; 0 prints every node by itself.
func (e *Explanation) WriteTable(out io.Writer, top int) error {
	screen := tables.ScreenOf(out)
	var b strings.Builder
	fmt.Fprintf(&b, "pod %s, %s, profile %s of %s\n%s\n", e.Pod, e.State, e.Profile, e.Configuration, e.Verdict)
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
		b.WriteString("\n" + scoreTable(screen, scored, top))
	}
	for _, n := range e.NotScored {
		fmt.Fprintf(&b, "not scored by %s: %s\n", n.Plugin, n.Why)
	}
	if r := e.RunnerUp; r != nil {
		r.write(&b)
	}
	if len(scored) < len(e.Nodes) {
		b.WriteString("\n" + rejectionTable(screen, e.Nodes[len(scored):], top == 0))
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
	_, err := io.WriteString(out, screen.Wrap(b.String()))
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

// scoreTable has a row for the nodes that every plugin gives the same, with the first of them, and a column for each plugin that
// tells nodes apart. Below it are the terms of the plugins that have some, for the same nodes.
func scoreTable(screen tables.Screen, nodes []Node, top int) string {
	rows := alikeInRow(nodes, top == 0)
	shown := rows
	if top > 0 {
		shown = rows[:min(top, len(rows))]
	}
	columns := []tables.Column{{Name: "node"}, {Name: "total", Number: true}}
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
		columns = append(columns, tables.Column{Name: fmt.Sprintf("%s ×%d", s.Plugin, s.Weight), Number: true, Extra: true})
	}
	t := tables.New(screen, columns...)
	hidden := len(nodes)
	for _, of := range shown {
		hidden -= len(of)
		row := []any{likeIt(of[0].Name, len(of)-1), of[0].Total}
		for _, i := range telling {
			row = append(row, of[0].Scores[i].cell())
		}
		t.Row(row...)
	}
	out := t.String()
	if hidden > 0 {
		out += fmt.Sprintf("… and %d more of the %d nodes that it fits (--top, --all-nodes)\n", hidden, len(nodes))
	}
	if len(telling) > 0 {
		out += "cells: raw score → from 0 to 100 = points with the weight\n"
	}
	if len(same) > 0 {
		out += "the same for all nodes: " + strings.Join(same, ", ") + "\n"
	}
	for i := range nodes[0].Scores {
		if costs := costTable(screen, shown, i, top == 0); costs != "" {
			out += "\n" + costs
		}
	}
	return out
}

// cell shows the raw score, the normalised one and the points, each unless it says nothing new.
func (s *Score) cell() string {
	cell := fmt.Sprint(s.Normalised)
	if s.Raw != s.Normalised {
		cell = fmt.Sprintf("%d → %s", s.Raw, cell)
	}
	if s.Weighted != s.Normalised {
		cell += fmt.Sprintf(" = %d", s.Weighted)
	}
	return cell
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

func rejectionTable(screen tables.Screen, nodes []Node, all bool) string {
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
	t := tables.New(screen, tables.Column{Name: "nodes", Number: true}, tables.Column{Name: "rejected by"},
		tables.Column{Name: "because"}, tables.Column{Name: "which", Extra: true})
	for _, g := range order {
		which := g.nodes
		if !all && len(which) > exampleNodes {
			which = append(slices.Clone(which[:exampleNodes]), "…")
		}
		t.Row(len(g.nodes), g.plugin, g.reasons, strings.Join(which, " "))
	}
	return t.String()
}

func (r *RunnerUp) write(b *strings.Builder) {
	fmt.Fprintf(b, "\nfor %s to win, it needs more than %s", r.Node, points(r.Margin))
	if len(r.Changes) == 0 {
		b.WriteString("; no change of one weight brings them")
	}
	for i, c := range r.Changes {
		sep := ", or "
		if i > 0 {
			sep = " or "
		}
		b.WriteString(sep + c.String())
	}
	b.WriteString("\n")
	for _, d := range r.Differences {
		fmt.Fprintf(b, "  %s: %d against %d, %+d points\n", d.Plugin, d.Winner, d.RunnerUp, d.Points)
		if d.Why != "" {
			fmt.Fprintf(b, "    %s\n", d.Why)
		}
	}
}
