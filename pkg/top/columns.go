package top

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"berth.dev/berth/pkg/tables"
)

// A screen of this width has two columns, separated by a line: the tab, and what there is to say of the chosen entry.
const (
	roomForTwo = 160
	separator  = " │ "
)

func (m *Model) wide() bool { return m.width >= roomForTwo }

// left is the width of the tab, and right that of what is said of an entry. On a screen that is not wide these take
// turns.
func (m *Model) left() int {
	if m.wide() {
		return (m.width - len([]rune(separator))) / 2
	}
	return m.width
}

func (m *Model) right() int {
	if m.wide() {
		return m.width - len([]rune(separator)) - m.left()
	}
	return m.width
}

// besideEachOther joins the two columns.
func (m *Model) besideEachOther(left, right []string) []string {
	lines := make([]string, m.height-1-len(m.header()))
	for i := range lines {
		var l, r string
		if i < len(left) {
			l = left[i]
		}
		if i < len(right) {
			r = right[i]
		}
		lines[i] = l + strings.Repeat(" ", max(0, m.left()-text.StringWidthWithoutEscSequences(l))) + separator + r
	}
	return lines
}

// drawRight is what was opened, or what there is to say of the chosen entry.
func (m *Model) drawRight() []string {
	if m.detail != nil {
		return m.drawDetail()
	}
	if len(m.lines) == 0 {
		return nil
	}
	e := m.lines[m.cursors[m.tab]]
	lines := append(m.record(e), m.belongings(e)...)
	if room := m.rows() + 1; len(lines) > room {
		lines = append(lines[:room-1], fmt.Sprintf("… and %d lines more", len(lines)-room+1))
	}
	return lines
}

// record has every cell of an entry, in full.
func (m *Model) record(e entry) []string {
	widest := 0
	for _, c := range m.columns {
		widest = max(widest, text.StringWidth(c.Name))
	}
	var lines []string
	for i, c := range m.columns {
		indent := widest + gap
		said := tables.Screen{Width: max(1, m.right()-indent)}.Wrap(strings.ReplaceAll(e.cells[i], "\n", " "))
		name := c.Name
		for _, part := range strings.Split(said, "\n") {
			lines = append(lines, cut(bold+text.Pad(name, indent, ' ')+plain+part, m.right()))
			name = ""
		}
	}
	return lines
}

// belongings are the pods of a node and the workloads of a namespace or a queue.
func (m *Model) belongings(e entry) []string {
	var lines []string
	switch e.kind {
	case kindNode:
		for _, p := range m.source.PodsOn(e.name) {
			lines = append(lines, cut(podLine(&p), m.right()))
		}
	case kindNamespace, kindQueue:
		table := tables.New(tables.Screen{Width: m.right()}, jobColumns...)
		has := workloadsOf(e)
		for i := range m.cluster.Jobs {
			if j := &m.cluster.Jobs[i]; has(j) {
				table.Row(jobCells(j)...)
			}
		}
		lines = strings.Split(strings.TrimRight(table.String(), "\n"), "\n")
	}
	return append([]string{""}, lines...)
}
