package top

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/screen/tables"
)

const (
	// longestCell bounds the width of columns except the last. shortestCell is the least width of columns of text, and
	// shortestLast that of the last column, which has the reason and gets the remaining width.
	longestCell, shortestCell, shortestLast = 40, 16, 24
	// gap is what separates columns.
	gap = 2
	// aboutLines is the number of lines below a list for the whole last cell of the chosen entry, if the screen has enough
	// rows.
	aboutLines, roomForAbout = 3, 16
)

// shownColumn is a column that fits.
type shownColumn struct {
	tables.Column
	at, width int
}

// layOut chooses the columns that fit: extra ones are left out first, then columns of text are narrowed, then columns
// of numbers are left out from the right, but never the first and the last column.
func (m *Model) layOut() []shownColumn {
	shown := make([]shownColumn, len(m.columns))
	for i, c := range m.columns {
		width := text.StringWidth(c.Name) + 1 // for an arrow
		for _, e := range m.lines {
			width = max(width, min(longestCell, text.StringWidthWithoutEscSequences(e.cells[i])))
		}
		shown[i] = shownColumn{c, i, width}
	}
	last := &shown[len(shown)-1]
	last.width -= min(max(0, m.over(shown)), max(0, last.width-shortestLast))
	shown = m.leaveOut(shown, func(c *shownColumn) bool { return c.Extra })
	for over := m.over(shown); over > 0; over-- {
		widest := -1
		for i := range shown[:len(shown)-1] {
			if !shown[i].Number && shown[i].width > shortestCell && (widest < 0 || shown[i].width > shown[widest].width) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		shown[widest].width--
	}
	shown = m.leaveOut(shown, func(c *shownColumn) bool { return c.Number })
	// The last column gets the remaining width.
	last = &shown[len(shown)-1]
	last.width = max(1, last.width-m.over(shown))
	return shown
}

// over is by how much the columns are wider than the screen, negative if they are narrower.
func (m *Model) over(shown []shownColumn) int {
	over := gap*(len(shown)-1) - m.width
	for i := range shown {
		over += shown[i].width
	}
	return over
}

// leaveOut removes columns for which is returns true, from the right and without the first and the last one, until the
// others fit.
func (m *Model) leaveOut(shown []shownColumn, is func(*shownColumn) bool) []shownColumn {
	for i := len(shown) - 2; i > 0 && m.over(shown) > 0; i-- {
		if is(&shown[i]) {
			shown = slices.Delete(shown, i, i+1)
		}
	}
	return shown
}

// drawList draws a table with the columns that fit, and below it the whole last cell of the chosen entry.
func (m *Model) drawList() []string {
	shown := m.layOut()
	row := func(cell func(column int) string) string {
		cells := make([]string, len(shown))
		for i, c := range shown {
			cells[i] = fill(cell(c.at), c, i == len(shown)-1)
		}
		return strings.Join(cells, strings.Repeat(" ", gap))
	}
	heading := row(func(i int) string { return m.heading(i, m.columns[i]) })
	if more := len(m.columns) - len(shown); more > 0 {
		sign := fmt.Sprintf("  (+%s)", plural.Of(more, "column"))
		if text.StringWidth(heading+sign) > m.width {
			sign = " …"
		}
		heading += sign
	}
	lines := []string{bold + cut(heading, m.width) + plain}
	top := m.tops[m.tab]
	for i := top; i < min(len(m.lines), top+m.rows()); i++ {
		e := m.lines[i]
		line := cut(row(func(c int) string { return strings.ReplaceAll(e.cells[c], "\n", " ") }), m.width)
		lines = append(lines, marked(line, i == m.cursors[m.tab], m.width))
	}
	if len(m.lines) == 0 {
		lines = append(lines, "none")
	}
	for len(lines) < m.rows()+1 {
		lines = append(lines, "")
	}
	return append(lines, m.about()...)
}

// fill cuts or pads a cell to the width of its column. Text is cut in the middle: names often differ only at the end.
func fill(cell string, c shownColumn, last bool) string {
	width := text.StringWidthWithoutEscSequences(cell)
	switch {
	case width > c.width && (last || strings.Contains(cell, "\x1b")):
		return text.Snip(cell, c.width, "…")
	case width > c.width:
		runes := []rune(cell)
		head := c.width / 2
		return string(runes[:head]) + "…" + string(runes[len(runes)-(c.width-head-1):])
	case last:
		return cell
	case c.Number:
		return strings.Repeat(" ", c.width-width) + cell
	}
	return cell + strings.Repeat(" ", c.width-width)
}

// aboutHeight is the number of lines for the last cell of the chosen entry.
func (m *Model) aboutHeight() int {
	if m.detail != nil || m.tab == tabMap || m.tab == tabNodes || m.height < roomForAbout {
		return 0
	}
	return aboutLines
}

// about is the last cell of the chosen entry, wrapped to its lines.
func (m *Model) about() []string {
	lines := make([]string, m.aboutHeight())
	if len(lines) == 0 || len(m.lines) == 0 {
		return lines
	}
	cells := m.lines[m.cursors[m.tab]].cells
	wrapped := strings.Split(tables.Screen{Width: m.width}.Wrap(strings.ReplaceAll(cells[len(cells)-1], "\n", " ")), "\n")
	copy(lines, wrapped)
	if len(wrapped) > len(lines) {
		lines[len(lines)-1] = text.Snip(lines[len(lines)-1], m.width-1, "") + "…"
	}
	return lines
}

// sortNext sorts by the next column that is shown, and after the last one not at all.
func (m *Model) sortNext() {
	if m.tab == tabMap {
		return
	}
	by := &m.sorted[m.tab]
	shown := m.layOut()
	if next := slices.IndexFunc(shown, func(c shownColumn) bool { return c.at > *by }); next >= 0 {
		*by = shown[next].at
	} else {
		*by = -1
	}
	// Numbers are sorted with the largest first.
	m.descending[m.tab] = *by >= 0 && m.columns[*by].Number
}
