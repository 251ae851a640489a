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

// WriteTable prints the explanation for people: the best nodes with what each plugin gave them, and the rejected nodes by
// reason. Top bounds the scored nodes; 0 prints every node by itself.
func (e *Explanation) WriteTable(out io.Writer, top int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "pod %s, %s, profile %s of %s\n%s\n", e.Pod, e.State, e.Profile, e.Configuration, e.Verdict)
	e.writeGang(&b)
	for _, h := range e.Held {
		if e.Gang == nil {
			fmt.Fprintf(&b, "kept out of the queue by %s: %s\n", h.Plugin, strings.Join(h.Reasons, ", "))
		}
	}
	scored := e.scored()
	if len(scored) > 0 {
		b.WriteString("\n" + scoreTable(scored, top))
	}
	if r := e.RunnerUp; r != nil {
		r.write(&b)
	}
	if len(scored) < len(e.Nodes) {
		b.WriteString("\n" + rejectionTable(e.Nodes[len(scored):], top == 0))
	}
	for i, c := range e.Closest {
		if i == 0 {
			b.WriteString("\nclosest to fitting:\n")
		}
		fmt.Fprintf(&b, "  %s has %s of the %s %s\n", c.Node, c.Free, c.Needs, c.Resource)
	}
	if p := e.Preemption; p != nil && p.Message != "" {
		fmt.Fprintf(&b, "\npreemption: %s\n", p.Message)
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

func (e *Explanation) writeGang(b *strings.Builder) {
	g := e.Gang
	if g == nil {
		return
	}
	fmt.Fprintf(b, "gang %s: at least %d together; %d bound, %d pending, %d gated, %d ended\n", g.Name, g.MinMember, g.Bound, g.Pending, g.Gated, g.Ended)
	if g.Missing != "" {
		b.WriteString("what is below is for this member by itself\n")
		return
	}
	byNode := map[string][]string{}
	for _, s := range g.Seats {
		byNode[s.Node] = append(byNode[s.Node], s.Pod)
	}
	for _, node := range slices.Sorted(maps.Keys(byNode)) {
		fmt.Fprintf(b, "  plan: %s: %s\n", node, strings.Join(byNode[node], ", "))
	}
}

func newTable() table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.Style().Format.Header = text.FormatDefault
	return t
}

// scoreTable has a column for each plugin that tells nodes apart. A cell is the plugin's raw score, the normalised one, and
// the points that it is worth.
func scoreTable(nodes []Node, top int) string {
	shown := nodes
	if top > 0 {
		shown = nodes[:min(top, len(nodes))]
	}
	t := newTable()
	header := table.Row{"node", "total"}
	columns := []table.ColumnConfig{{Number: 2, Align: text.AlignRight}}
	var telling []int
	var same []string
	for i, s := range nodes[0].Scores {
		if len(nodes) > 1 && alike(nodes, i) {
			same = append(same, fmt.Sprintf("%s %d", s.Plugin, s.Weighted))
			continue
		}
		telling = append(telling, i)
		header = append(header, fmt.Sprintf("%s ×%d", s.Plugin, s.Weight))
		columns = append(columns, table.ColumnConfig{Number: len(header), Align: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	t.AppendHeader(header)
	for _, n := range shown {
		row := table.Row{n.Name, n.Total}
		for _, i := range telling {
			s := n.Scores[i]
			row = append(row, fmt.Sprintf("%d → %d = %d", s.Raw, s.Normalised, s.Weighted))
		}
		t.AppendRow(row)
	}
	out := t.Render() + "\n"
	if hidden := len(nodes) - len(shown); hidden > 0 {
		out += fmt.Sprintf("… and %d more nodes that it fits (--all-nodes)\n", hidden)
	}
	if len(telling) > 0 {
		out += "cells: raw → normalised to 0–100 = points with the weight\n"
	}
	if len(same) > 0 {
		out += "the same for all nodes: " + strings.Join(same, ", ") + "\n"
	}
	return out
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
	plugin, reasons string
	nodes           []string
}

func rejectionTable(nodes []Node, all bool) string {
	groups := map[string]*group{}
	for _, n := range nodes {
		reasons := strings.Join(n.Rejected.Reasons, "; ")
		key := n.Rejected.Plugin + "\x00" + reasons
		if groups[key] == nil {
			groups[key] = &group{plugin: n.Rejected.Plugin, reasons: reasons}
		}
		groups[key].nodes = append(groups[key].nodes, n.Name)
	}
	order := slices.SortedFunc(maps.Values(groups), func(a, b *group) int {
		return cmp.Or(cmp.Compare(len(b.nodes), len(a.nodes)), cmp.Compare(a.plugin, b.plugin), cmp.Compare(a.reasons, b.reasons))
	})
	t := newTable()
	t.AppendHeader(table.Row{"nodes", "rejected by", "because", "which"})
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
	if len(r.Differences) == 0 {
		fmt.Fprintf(b, "\n%s is given the same by every plugin\n", r.Node)
		return
	}
	fmt.Fprintf(b, "\nfor %s to win, it needs more than %d further points", r.Node, r.Margin)
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
	}
}
