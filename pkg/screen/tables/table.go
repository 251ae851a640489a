package tables

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Column of a table.
type Column struct {
	Name string
	// Number columns are right-aligned, and wrapped only as a last resort.
	Number bool
	// Extra columns are left out first if the table is too wide.
	Extra bool
}

// Table is a table to which rows are added.
type Table struct {
	screen  Screen
	columns []Column
	rows    [][]string
}

// New makes a table for a screen. Without names it has no header.
func New(screen Screen, columns ...Column) *Table {
	return &Table{screen: screen, columns: columns}
}

// Row adds a row with as many cells as there are columns.
func (t *Table) Row(cells ...any) {
	row := make([]string, len(t.columns))
	for i, cell := range cells {
		row[i] = fmt.Sprint(cell)
	}
	t.rows = append(t.rows, row)
}

const (
	// padding is the width between columns.
	padding = 2
	// narrowest is the least width of a column of text before columns are left out that are not extra.
	narrowest = 12
)

// String is the table. If it is wider than the screen, text is wrapped between words. If that is not enough, columns
// are left out and named below: first the extra ones, then from the right, but never the first.
func (t *Table) String() string {
	shown := make([]int, len(t.columns))
	for i := range t.columns {
		shown[i] = i
	}
	widths := t.widths(shown)
	limited, longest := t.screen.Width > 0 && !t.screen.Wide, 2*narrowest
	for limited && !t.fit(shown, widths, longest) {
		extra := lastExtra(t.columns, shown)
		switch {
		case extra > 0:
			shown = slices.Delete(shown, extra, extra+1)
		case longest > narrowest:
			longest = narrowest
		case len(shown) > 1:
			shown = shown[:len(shown)-1]
		default:
			limited = false
		}
		widths = t.widths(shown)
		if !limited {
			widths[0] = max(1, t.screen.Width-padding)
		}
	}
	return t.render(shown, widths) + t.hidden(shown)
}

// lastExtra is the position of the last extra column, 0 if there is none.
func lastExtra(columns []Column, shown []int) int {
	for i := len(shown) - 1; i > 0; i-- {
		if columns[shown[i]].Extra {
			return i
		}
	}
	return 0
}

// widths are the full widths of the columns.
func (t *Table) widths(shown []int) []int {
	widths := make([]int, len(shown))
	for i, c := range shown {
		widths[i] = longestLine(t.columns[c].Name)
		for _, row := range t.rows {
			widths[i] = max(widths[i], longestLine(row[c]))
		}
	}
	return widths
}

// fit narrows the widest columns until all fit, and reports whether they do. The names of number columns are wrapped
// first. Words that are longer than longest are broken.
func (t *Table) fit(shown, widths []int, longest int) bool {
	over := padding*len(shown) - t.screen.Width
	for _, w := range widths {
		over += w
	}
	floors := slices.Clone(widths)
	for _, numbers := range []bool{true, false} {
		for i, c := range shown {
			if t.columns[c].Number || !numbers {
				floors[i] = t.floor(c, widths[i], longest)
			}
		}
		over = narrow(widths, floors, over)
	}
	return over <= 0
}

// narrow narrows the widest columns down to their floors, and returns by how much the table is still too wide.
func narrow(widths, floors []int, over int) int {
	for ; over > 0; over-- {
		widest := -1
		for i := range widths {
			if widths[i] > floors[i] && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return over
		}
		widths[widest]--
	}
	return 0
}

// floor is the least width of a column.
func (t *Table) floor(c, width, longest int) int {
	words := longestWord(strings.ReplaceAll(t.columns[c].Name, "-", "- "))
	for _, row := range t.rows {
		switch {
		case t.columns[c].Number && longest > narrowest:
			words = max(words, longestLine(row[c]))
		case t.columns[c].Number:
			words = max(words, longestWord(row[c]))
		default:
			words = max(words, min(longestWord(row[c]), longest))
		}
	}
	if !t.columns[c].Number && words < narrowest {
		words = narrowest
	}
	return min(words, width)
}

func (t *Table) render(shown, widths []int) string {
	w := table.NewWriter()
	w.SetStyle(table.StyleLight)
	w.Style().Options = table.OptionsNoBordersAndSeparators
	w.Style().Format.Header = text.FormatDefault
	header, named := make(table.Row, len(shown)), false
	configs := make([]table.ColumnConfig, len(shown))
	for i, c := range shown {
		header[i] = headerOf(t.columns[c].Name, widths[i])
		named = named || t.columns[c].Name != ""
		configs[i] = table.ColumnConfig{
			Number: i + 1, WidthMax: widths[i], WidthMaxEnforcer: text.WrapSoft, VAlignHeader: text.VAlignBottom,
		}
		if t.columns[c].Number {
			configs[i].Align, configs[i].AlignHeader = text.AlignRight, text.AlignRight
			configs[i].WidthMaxEnforcer = wrapTight
		}
	}
	w.SetColumnConfigs(configs)
	if named {
		w.AppendHeader(header)
	}
	for _, row := range t.rows {
		cells := make(table.Row, len(shown))
		for i, c := range shown {
			cells[i] = row[c]
		}
		w.AppendRow(cells)
	}
	var b strings.Builder
	for _, line := range strings.Split(w.Render(), "\n") {
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// wrapTight wraps text without trailing spaces, so that every line can be right-aligned.
func wrapTight(s string, width int) string {
	lines := strings.Split(text.WrapSoft(s, width), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// headerOf wraps a name at spaces and after hyphens: names of profiles are often longer than the values below.
func headerOf(name string, width int) string {
	lines := []string{""}
	for _, part := range strings.SplitAfter(strings.ReplaceAll(name, "-", "-\x00"), " ") {
		for _, word := range strings.Split(part, "\x00") {
			last := &lines[len(lines)-1]
			if *last != "" && longestLine(strings.TrimRight(*last+word, " ")) > width {
				lines = append(lines, word)
			} else {
				*last += word
			}
		}
	}
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// hidden names the columns that do not fit.
func (t *Table) hidden(shown []int) string {
	var names []string
	for i, c := range t.columns {
		if !slices.Contains(shown, i) && c.Name != "" {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return t.screen.Wrap("no room for "+strings.Join(names, ", ")+" (--wide)") + "\n"
}

// Wrap wraps lines that are wider than the screen between words, and keeps their indentation.
func (s Screen) Wrap(lines string) string {
	if s.Width <= 0 || s.Wide {
		return lines
	}
	var wrapped []string
	for _, line := range strings.Split(lines, "\n") {
		if longestLine(line) <= s.Width {
			wrapped = append(wrapped, line)
			continue
		}
		words := strings.TrimLeft(line, " ")
		indent := strings.Repeat(" ", min(len(line)-len(words), s.Width/2))
		for _, part := range strings.Split(text.WrapSoft(words, s.Width-len(indent)), "\n") {
			wrapped = append(wrapped, indent+strings.TrimRight(part, " "))
		}
	}
	return strings.Join(wrapped, "\n")
}

func longestLine(s string) int { return text.LongestLineLen(s) }

func longestWord(s string) int {
	longest := 0
	for _, word := range strings.Fields(s) {
		longest = max(longest, text.LongestLineLen(word))
	}
	return longest
}

// longestCell bounds reasons in tables, in bytes.
const longestCell = 160

// Shorten cuts a long reason. The event and "berth explain" have the whole text.
func Shorten(reason string) string {
	if len(reason) <= longestCell {
		return reason
	}
	return strings.ToValidUTF8(reason[:longestCell-len("…")], "") + "…"
}
