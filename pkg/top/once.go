// Package top shows an overview of a cluster in a terminal: once, as text, or live, with keys to move, filter, sort and
// explain.
package top

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"berth.dev/berth/pkg/overview"
	"berth.dev/berth/pkg/price"
	"berth.dev/berth/pkg/tables"
)

// usualWidth is taken for the map where the output has no width.
const usualWidth = 100

// Once writes an overview as text. Of each list it shows most entries, all with 0.
func Once(out io.Writer, c *overview.Cluster, most int) error {
	screen := tables.ScreenOf(out)
	var b strings.Builder
	for _, line := range c.Lines() {
		b.WriteString(screen.Wrap(line) + "\n")
	}
	for _, line := range c.LeftOut {
		b.WriteString(screen.Wrap("left out: "+line) + "\n")
	}
	onceMap(&b, screen, c)
	section(&b, screen, "Queue", len(c.Queue), most, queueColumns, func(i int) []any { return queueCells(&c.Queue[i]) })
	columns, cells := gangTable(c.Gangs)
	section(&b, screen, "Gangs", len(c.Gangs), most, columns, func(i int) []any { return cells(&c.Gangs[i]) })
	section(&b, screen, "Warnings", len(c.Warnings), most, warningColumns,
		func(i int) []any { return warningCells(&c.Warnings[i], c.Taken) })
	if _, err := io.WriteString(out, b.String()); err != nil {
		return fmt.Errorf("printing the overview: %w", err)
	}
	return nil
}

func onceMap(b *strings.Builder, screen tables.Screen, c *overview.Cluster) {
	if len(c.Nodes) == 0 {
		return
	}
	b.WriteString("\n" + screen.Wrap(Legend) + "\n")
	for _, row := range mapRows(c.Nodes, cmp.Or(screen.Width, usualWidth)) {
		if row.title != "" {
			b.WriteString(screen.Wrap(row.title) + "\n")
			continue
		}
		cells := make([]string, len(row.nodes))
		for i := range row.nodes {
			cells[i] = glyphs(screen, row.nodes[i].GPUs)
		}
		b.WriteString(strings.Join(cells, " ") + "\n")
	}
}

func section(b *strings.Builder, screen tables.Screen, title string, count, most int, columns []tables.Column,
	cells func(int) []any) {
	if count == 0 {
		return
	}
	shown := count
	if most > 0 {
		shown = min(count, most)
	}
	table := tables.New(screen, columns...)
	for i := range shown {
		table.Row(cells(i)...)
	}
	b.WriteString("\n" + title + "\n" + table.String())
	if shown < count {
		fmt.Fprintf(b, "and %d more (--all)\n", count-shown)
	}
}

// Cells that are sorted by their amount and shown in words.
type (
	gpus    int64 // in milli-GPU
	tenths  int64 // the same, of what is weighed and not counted
	cores   int64 // in milli-cores
	dollars int64 // in micro-dollars
	seconds float64
)

func (g gpus) String() string    { return overview.GPUs(int64(g)) }
func (t tenths) String() string  { return overview.Roughly(int64(t)) }
func (c cores) String() string   { return fmt.Sprintf("%.1f", float64(c)/1000) }
func (d dollars) String() string { return overview.Dollars(price.MicroDollars(d)) }
func (s seconds) String() string { return tables.Seconds(float64(s)) }

var queueColumns = []tables.Column{{Name: "#", Number: true}, {Name: "Name"}, {Name: "Pods", Number: true},
	{Name: "GPUs", Number: true},
	{Name: "Priority", Number: true, Extra: true}, {Name: "Waiting", Number: true}, {Name: "Scheduler", Extra: true},
	{Name: "Reason"}}

func queueCells(w *overview.Waiting) []any {
	var position any = "-"
	if w.Position > 0 {
		position = w.Position
	}
	return []any{position, w.Title(), w.Pods, gpus(w.MilliGPU), w.Priority, seconds(w.WaitSeconds), w.Scheduler, w.Why()}
}

var gangColumns = []tables.Column{{Name: "Gang"}, {Name: "On nodes", Number: true}, {Name: "Needs", Number: true},
	{Name: "Members", Number: true},
	{Name: "GPUs", Number: true}, {Name: "Nodes", Number: true, Extra: true}, {Name: "Phase", Extra: true},
	{Name: "Waiting", Number: true}, {Name: "Reason"}}

// groupsColumn is where the groups within gangs stand, if any gang has some.
const groupsColumn = 7

// gangTable returns the columns for the gangs, and the cells of one.
func gangTable(gangs []overview.Gang) ([]tables.Column, func(*overview.Gang) []any) {
	if !slices.ContainsFunc(gangs, func(g overview.Gang) bool { return g.Groups != "" }) {
		return gangColumns, gangCells
	}
	return slices.Insert(slices.Clone(gangColumns), groupsColumn, tables.Column{Name: "Groups", Extra: true}),
		func(g *overview.Gang) []any { return slices.Insert(gangCells(g), groupsColumn, any(g.Groups)) }
}

func gangCells(g *overview.Gang) []any {
	var waiting any = "-"
	if !g.Started {
		waiting = seconds(g.WaitSeconds)
	}
	return []any{g.Namespace + "/" + g.Name, g.Scheduled, g.MinMember, g.Members, gpus(g.MilliGPU), g.Nodes, g.Phase,
		waiting, g.Lacks()}
}

var warningColumns = []tables.Column{{Name: "Last seen", Number: true}, {Name: "Times", Number: true, Extra: true},
	{Name: "Object"}, {Name: "Reason"}, {Name: "Message"}}

func warningCells(w *overview.Warning, now time.Time) []any {
	return []any{seconds(max(0, now.Sub(w.Time)).Truncate(time.Second).Seconds()), w.Count, w.Title(), w.Reason, w.Brief()}
}

var nodeColumns = []tables.Column{{Name: "Node"}, {Name: "GPUs"}, {Name: "Used", Number: true},
	{Name: "Stranded", Number: true}, {Name: "Free cores", Number: true},
	{Name: "Pods", Number: true, Extra: true}, {Name: "$/h", Number: true, Extra: true}, {Name: "Idle $/h", Number: true},
	{Name: "Model", Extra: true},
	{Name: "Rack", Extra: true}, {Name: "State"}}

func nodeCells(screen tables.Screen, n *overview.Node) []any {
	var cost, idle any = "-", "-"
	if n.Priced {
		cost, idle = dollars(n.MicroDollarsPerHour), dollars(n.IdleMicroDollarsPerHour)
	}
	return []any{n.Name, glyphs(screen, n.GPUs), gpus(n.AllocatedMilliGPU), tenths(n.StrandedMilliGPU),
		cores(n.FreeCPUMilli),
		n.Pods, cost, idle, n.Model, n.Rack, n.State}
}
