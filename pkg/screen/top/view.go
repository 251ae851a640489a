package top

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/jedib0t/go-pretty/v6/text"

	"berth.dev/berth/pkg/cluster/overview"
	"berth.dev/berth/pkg/screen/tables"
)

// reverse marks the chosen line, and bold marks titles. Both are readable without colors.
const reverse, bold, plain = "\x1b[7m", "\x1b[1m", "\x1b[0m"

// roomForTotals is the number of rows from which on the totals are wrapped instead of cut.
const roomForTotals = 20

// View draws the screen.
func (m *Model) View() tea.View {
	v := tea.NewView(strings.Join(m.draw(), "\n"))
	v.AltScreen, v.WindowTitle = true, "berth top"
	return v
}

// header has the totals and the tabs.
func (m *Model) header() []string {
	var lines []string
	for _, line := range append(m.cluster.Lines(), prefixed("left out: ", m.cluster.LeftOut)...) {
		if m.height >= roomForTotals {
			line = tables.Screen{Width: m.width}.Wrap(line)
		}
		for _, part := range strings.Split(line, "\n") {
			lines = append(lines, cut(part, m.width))
		}
	}
	bar := m.tabBar(true)
	if text.StringWidthWithoutEscSequences(bar) > m.width {
		bar = m.tabBar(false)
	}
	return append(lines, cut(bar, m.width))
}

// tabBar has the numbers of the tabs, and the names of all or only of the chosen one.
func (m *Model) tabBar(named bool) string {
	names := make([]string, tabs)
	for i, name := range tabNames {
		if names[i] = fmt.Sprintf(" %d ", i+1); named || i == m.tab {
			names[i] += name + " "
		}
		if i == m.tab {
			names[i] = reverse + names[i] + plain
		}
	}
	return strings.Join(names, "")
}

func prefixed(prefix string, lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = prefix + line
	}
	return out
}

// rows is the number of lines for a list: those without the header, the column names, about and the footer.
func (m *Model) rows() int { return max(1, m.height-len(m.header())-2-m.aboutHeight()) }

// draw returns the lines of the screen.
func (m *Model) draw() []string {
	lines := m.header()
	if m.detail != nil {
		lines = append(lines, m.drawDetail()...)
	} else {
		lines = append(lines, m.drawTab()...)
	}
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	return append(lines[:min(len(lines), m.height-1)], cut(m.footer(), m.width))
}

func (m *Model) drawTab() []string {
	if m.tab == tabMap {
		return m.drawMap()
	}
	return m.drawList()
}

func (m *Model) footer() string {
	switch {
	case m.typing:
		return "/" + m.filter + "▏"
	case m.detail != nil && len(m.detail.pods) > 0:
		return fmt.Sprintf("%d of %d  Enter explain  Esc back", m.detail.at+1, len(m.detail.lines))
	case m.detail != nil:
		return fmt.Sprintf("line %d of %d  Esc back", m.detail.at+1, len(m.detail.lines))
	}
	count := fmt.Sprintf("%d of %d", min(len(m.lines), m.cursors[m.tab]+1), len(m.lines))
	if m.filter != "" {
		count += " with " + m.filter
	}
	if m.scope != nil {
		count += " of " + m.scope.of.Kind + " " + m.scope.of.Name + "  Esc back"
	}
	return m.arrows() + count + "  Enter open  / filter  s sort  ? keys  q leave"
}

func (m *Model) drawDetail() []string {
	d := m.detail
	lines := []string{bold + cut(d.title, m.width) + plain}
	room := m.rows()
	top := min(max(0, d.at-room+1), max(0, len(d.lines)-1))
	for i := top; i < min(len(d.lines), top+room); i++ {
		lines = append(lines, marked(cut(d.lines[i], m.width), i == d.at, m.width))
	}
	return lines
}

// marked marks a line if it is chosen.
func marked(line string, is bool, width int) string {
	if !is {
		return line
	}
	return reverse + text.Pad(text.StripEscape(line), width, ' ') + plain
}

// cut cuts a line to a width, with a sign.
func cut(line string, width int) string {
	if text.StringWidthWithoutEscSequences(line) <= width {
		return line
	}
	return text.Snip(line, width, "…") + plain
}

// arrows show that there are lines above or below those on the screen.
func (m *Model) arrows() string {
	arrows := ""
	if m.tops[m.tab] > 0 {
		arrows = "↑"
	}
	below := m.tops[m.tab]+m.rows() < len(m.lines)
	if m.tab == tabMap {
		below = m.tops[tabMap]+m.rows()-1 < len(mapRows(m.mapNodes(), m.width))
	}
	if below {
		arrows += "↓"
	}
	if arrows != "" {
		arrows += " "
	}
	return arrows
}

// heading is the name of a column, with an arrow if the list is sorted by it.
func (m *Model) heading(i int, c tables.Column) string {
	if m.sorted[m.tab] != i {
		return c.Name
	}
	if m.descending[m.tab] {
		return c.Name + "↓"
	}
	return c.Name + "↑"
}

// mapNodes are the nodes that match the filter.
func (m *Model) mapNodes() []overview.Node {
	nodes := make([]overview.Node, 0, len(m.lines))
	shown := map[string]bool{}
	for _, e := range m.lines {
		shown[e.Name] = true
	}
	for _, n := range m.cluster.Nodes {
		if shown[n.Name] {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// drawMap draws the nodes by domain and model, and describes the chosen one.
func (m *Model) drawMap() []string {
	nodes := m.mapNodes()
	cursor := m.cursors[tabMap]
	var lines []string
	at, chosenLine := 0, 0
	for _, row := range mapRows(nodes, m.width) {
		if row.title != "" {
			lines = append(lines, bold+cut(row.title, m.width)+plain)
			continue
		}
		cells := make([]string, len(row.nodes))
		for i := range row.nodes {
			if cells[i] = glyphs(m.screen, row.nodes[i].GPUs); at == cursor {
				cells[i], chosenLine = reverse+glyphs(tables.Screen{}, row.nodes[i].GPUs)+plain, len(lines)
			}
			at++
		}
		lines = append(lines, cut(strings.Join(cells, " "), m.width))
	}
	top := &m.tops[tabMap]
	room := m.rows() - 1
	*top = min(max(*top, chosenLine-room+1), max(0, chosenLine-1))
	lines = lines[min(*top, len(lines)):min(*top+room, len(lines))]
	for len(lines) < room {
		lines = append(lines, "")
	}
	about := Legend
	if cursor < len(nodes) {
		n := &nodes[cursor]
		about = fmt.Sprintf("%s  %s %s of %d GPUs allocated, %s stranded, %.1f cores free, %s", n.Name, n.State,
			overview.GPUs(n.AllocatedMilliGPU), len(n.GPUs),
			overview.Roughly(n.StrandedMilliGPU), float64(n.FreeCPUMilli)/1000, n.Sharing)
	}
	return append(lines, cut(Legend, m.width), cut(about, m.width))
}

// entries are the columns and the lines of the tab before filtering.
func (m *Model) entries() ([]tables.Column, []entry) {
	c := m.cluster
	jobs := c.Jobs
	if m.scope != nil {
		jobs = slices.DeleteFunc(slices.Clone(jobs), func(j overview.Job) bool { return !m.scope.of.Has(&j) })
	}
	var list overview.List
	switch m.tab {
	case tabJobs:
		list = overview.JobRows(jobs)
	case tabQueue:
		list = overview.QueueRows(c.Queue)
	case tabGangs:
		list = overview.GangRows(c.Gangs)
	case tabWarnings:
		list = c.WarningRows()
	case tabNamespaces:
		list = c.NamespaceRows()
	case tabKueue:
		list = overview.KueueRows(c.Queues, c.Jobs)
	default:
		list = overview.NodeRows(c.Nodes)
	}
	entries := make([]entry, len(list.Rows))
	for i, row := range list.Rows {
		e := entry{Row: row, cells: make([]string, len(row.Cells))}
		for k, cell := range row.Cells {
			if node, ok := cell.(*overview.Node); ok {
				cell = glyphs(m.screen, node.GPUs)
			}
			e.cells[k] = fmt.Sprint(cell)
		}
		entries[i] = e
	}
	return list.Columns, entries
}

// podLine is a pod of a node in one line: its name, GPUs, devices, gang, priority and age.
func podLine(cells []any) string {
	devices, gang := "", ""
	if cells[2] != "" {
		devices = fmt.Sprint(" on ", cells[2])
	}
	if cells[3] != "" {
		gang = fmt.Sprint("  gang ", cells[3])
	}
	return fmt.Sprintf("%s  %v GPU%s  priority %d  age %v%s", cells[0], cells[1], devices, cells[4], cells[5], gang)
}
