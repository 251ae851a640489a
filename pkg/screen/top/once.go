// Package top shows an overview of a cluster in a terminal: once, as text, or live, with keys to move, filter, sort and
// explain.
package top

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"berth.dev/berth/pkg/cluster/overview"
	"berth.dev/berth/pkg/screen/tables"
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
	const all = "--all"
	section(&b, screen, "Queue", overview.QueueRows(c.Queue), most, all)
	section(&b, screen, "Gangs", overview.GangRows(c.Gangs), most, all)
	section(&b, screen, "Warnings", c.WarningRows(), most, all)
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

// section writes most entries of a list, all with 0, and what shows the rest.
func section(b *strings.Builder, screen tables.Screen, title string, list overview.List, most int, all string) {
	if len(list.Rows) == 0 {
		return
	}
	shown := len(list.Rows)
	if most > 0 {
		shown = min(shown, most)
	}
	table := tables.New(screen, list.Columns...)
	for _, row := range list.Rows[:shown] {
		table.Row(row.Cells...)
	}
	b.WriteString("\n" + title + "\n" + table.String())
	if more := len(list.Rows) - shown; more > 0 {
		fmt.Fprintf(b, "and %d more (%s)\n", more, all)
	}
}
