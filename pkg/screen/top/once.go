// Package top shows an overview of a cluster in a terminal: as text, or live with keys to move, filter, sort and
// explain.
//
// The commands top, jobs, status and demo call it. It reads an overview.Source and never a cluster itself.
package top

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"berth.dev/berth/pkg/cluster/overview"
	"berth.dev/berth/pkg/screen/tables"
)

// defaultWidth is the width of the map if the output has none.
const defaultWidth = 100

// sheet collects text for a screen.
type sheet struct {
	strings.Builder
	screen tables.Screen
}

func (s *sheet) lines(lines ...string) {
	for _, line := range lines {
		s.WriteString(s.screen.Wrap(line) + "\n")
	}
}

// print writes the sheet. What names its content in the error.
func (s *sheet) print(out io.Writer, what string) error {
	if _, err := io.WriteString(out, s.String()); err != nil {
		return fmt.Errorf("printing the %s: %w", what, err)
	}
	return nil
}

// Once writes an overview as text, with the first entries of each list, up to most; 0 means all.
func Once(out io.Writer, c *overview.Cluster, most int) error {
	s := &sheet{screen: tables.ScreenOf(out)}
	s.lines(c.Lines()...)
	s.lines(prefixed("left out: ", c.LeftOut)...)
	s.nodes(c.Nodes)
	const all = "--all"
	s.section("Queue", overview.QueueRows(c.Queue), most, all)
	s.section("Gangs", overview.GangRows(c.Gangs), most, all)
	s.section("Warnings", c.WarningRows(), most, all)
	return s.print(out, "overview")
}

// nodes draws the map.
func (s *sheet) nodes(nodes []overview.Node) {
	if len(nodes) == 0 {
		return
	}
	s.lines("", Legend)
	for _, row := range mapRows(nodes, cmp.Or(s.screen.Width, defaultWidth)) {
		if row.title != "" {
			s.lines(row.title)
			continue
		}
		cells := make([]string, len(row.nodes))
		for i := range row.nodes {
			cells[i] = glyphs(s.screen, row.nodes[i].GPUs)
		}
		s.WriteString(strings.Join(cells, " ") + "\n")
	}
}

// section writes the first entries of a list, up to most (0 means all), and names the flag or command all for the rest.
func (s *sheet) section(title string, list overview.List, most int, all string) {
	if len(list.Rows) == 0 {
		return
	}
	shown := len(list.Rows)
	if most > 0 {
		shown = min(shown, most)
	}
	table := tables.New(s.screen, list.Columns...)
	for _, row := range list.Rows[:shown] {
		table.Row(row.Cells...)
	}
	s.WriteString("\n" + title + "\n" + table.String())
	if more := len(list.Rows) - shown; more > 0 {
		fmt.Fprintf(s, "and %d more (%s)\n", more, all)
	}
}
