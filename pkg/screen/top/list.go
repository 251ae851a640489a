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
	// longestCell is how wide a column may be that is not the last, shortestCell how far one of words is narrowed, and
	// shortestLast how far the last one is: it says why, and takes the room that the others leave.
	longestCell, shortestCell, shortestLast = 40, 16, 24
	// gap is what separates columns.
	gap = 2
	// aboutLines is how many lines below a list have the last cell of the chosen entry in full, where the screen has
	// enough rows.
	aboutLines, roomForAbout = 3, 16
)

// shownColumn is a column for which there is room.
type shownColumn struct {
	tables.Column
	at, width int
}

// layOut chooses the columns that have room: extra ones are left out first, then words are narrowed, then numbers are
// left out from the right, but never the first and the last column.
func (m *Model) layOut() []shownColumn {
	shown := make([]shownColumn, len(m.columns))
	for i, c := range m.columns {
		width := text.StringWidth(c.Name) + 1 // for an arrow
		for _, e := range m.lines {
			width = max(width, min(longestCell, text.StringWidthWithoutEscSequences(e.cells[i])))
		}
		shown[i] = shownColumn{c, i, width}
	}
	for {
		last := len(shown) - 1
		over := gap*last - m.width
		for _, c := range shown {
			over += c.width
		}
		over = narrow(&shown[last], over, shortestLast)
		extra := -1
		for i := 1; i < last; i++ {
			if shown[i].Extra {
				extra = i
			}
		}
		switch {
		case over <= 0:
			shown[last].width -= over
			return shown
		case extra > 0:
			shown = slices.Delete(shown, extra, extra+1)
			continue
		}
		for over > 0 {
			widest := -1
			for i := range last {
				if !shown[i].Number && shown[i].width > shortestCell && (widest < 0 || shown[i].width > shown[widest].width) {
					widest = i
				}
			}
			if widest < 0 {
				break
			}
			shown[widest].width--
			over--
		}
		number := -1
		for i := 1; i < last; i++ {
			if shown[i].Number {
				number = i
			}
		}
		if over <= 0 || number < 0 {
			narrow(&shown[last], over, 1)
			return shown
		}
		shown = slices.Delete(shown, number, number+1)
	}
}

// narrow takes from a column what is too much, down to a least width, and returns what is left over.
func narrow(c *shownColumn, over, least int) int {
	less := min(max(0, over), max(0, c.width-least))
	c.width -= less
	return over - less
}

// drawList draws a table with the columns that have room, and below it what the chosen entry says in full.
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

// fill cuts or pads a cell to the width of its column. Of a name the middle is left out: it often differs from others
// at its end alone.
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

// aboutHeight is how many lines are kept for what the chosen entry says.
func (m *Model) aboutHeight() int {
	if m.detail != nil || m.tab == tabMap || m.tab == tabNodes || m.height < roomForAbout {
		return 0
	}
	return aboutLines
}

// about is the last cell of the chosen entry, in as many lines as there are.
func (m *Model) about() []string {
	lines := make([]string, m.aboutHeight())
	if len(lines) == 0 || len(m.lines) == 0 {
		return lines
	}
	cells := m.lines[m.cursors[m.tab]].cells
	said := strings.Split(tables.Screen{Width: m.width}.Wrap(strings.ReplaceAll(cells[len(cells)-1], "\n", " ")), "\n")
	copy(lines, said)
	if len(said) > len(lines) {
		lines[len(lines)-1] = text.Snip(lines[len(lines)-1], m.width-1, "") + "…"
	}
	return lines
}

// sortNext sorts by the next column that is shown, and after the last by none.
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
	// Of numbers the largest are looked for.
	m.descending[m.tab] = *by >= 0 && m.columns[*by].Number
}
