package top

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"berth.dev/berth/pkg/cluster/overview"
	"berth.dev/berth/pkg/screen/tables"
)

// refreshEvery is how often the view follows the cluster at most.
const refreshEvery = time.Second

// The tabs.
const (
	tabMap = iota
	tabNodes
	tabJobs
	tabQueue
	tabGangs
	tabWarnings
	tabNamespaces
	tabKueue
	tabs
)

var tabNames = [tabs]string{"Map", "Nodes", "Jobs", "Queue", "Gangs", "Warnings", "Namespaces", "Kueue"}

// Model is the state of the live view. It implements tea.Model.
type Model struct {
	ctx     context.Context
	source  overview.Source
	screen  tables.Screen
	cluster *overview.Cluster

	width, height int
	tab           int
	// By tab, cursors are the chosen entries, tops the first entries on the screen, and sorted the columns to sort by, -1
	// for the order of the cluster.
	cursors, tops, sorted [tabs]int
	descending            [tabs]bool
	filter                string
	typing                bool
	scope                 *scope
	detail                *detail
	lines                 []entry
	columns               []tables.Column
}

// scope limits the workloads to those of a namespace or of a queue.
type scope struct {
	of   entry
	from int // the tab to go back to
}

// detail is a text in place of the lists: the pods of a node, or an explanation.
type detail struct {
	title string
	lines []string
	pods  []overview.Row // of a node
	at    int
	back  *detail
}

// entry is a row of a list, with its cells as text.
type entry struct {
	overview.Row
	cells []string
}

type (
	refreshed struct{ cluster *overview.Cluster }
	explained struct {
		title, text string
		err         error
	}
)

// Run shows the live view until the user leaves it or ctx ends.
func Run(ctx context.Context, source overview.Source, color bool, in io.Reader, out io.Writer) error {
	shown, cancel := context.WithCancel(ctx) // ends follow
	defer cancel()
	model := newModel(shown, source, color)
	_, err := tea.NewProgram(model, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out),
		tea.WithoutSignalHandler()).Run()
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("running the live view: %w", err)
	}
	return ctx.Err()
}

func newModel(ctx context.Context, source overview.Source, color bool) *Model {
	m := &Model{ctx: ctx, source: source, screen: tables.Screen{Color: color}, cluster: source.Cluster(), width: 80,
		height: 24}
	for i := range m.sorted {
		m.sorted[i] = -1
	}
	m.arrange()
	return m
}

// Init is part of tea.Model.
func (m *Model) Init() tea.Cmd { return m.follow() }

// follow returns the cluster after the next change, or after some seconds, because the ages of entries grow.
func (m *Model) follow() tea.Cmd {
	return func() tea.Msg {
		for _, wake := range []struct {
			changed <-chan struct{}
			within  time.Duration
		}{{nil, refreshEvery}, {m.source.Changed, 4 * refreshEvery}} {
			select {
			case <-wake.changed:
			case <-time.After(wake.within):
			case <-m.ctx.Done():
				return nil
			}
		}
		return refreshed{m.source.Cluster()}
	}
}

// Update handles a message: a key, a new size, the cluster after a change, or an explanation.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = max(20, msg.Width), max(8, msg.Height)
	case refreshed:
		m.keepChosen(func() { m.cluster = msg.cluster })
		cmd = m.follow()
	case explained:
		m.showExplanation(msg)
	case tea.KeyPressMsg:
		if m.typing {
			m.typeFilter(msg)
		} else {
			cmd = m.press(msg.String())
		}
	}
	m.arrange()
	return m, cmd
}

// press handles a key.
func (m *Model) press(key string) tea.Cmd {
	if m.detail != nil {
		return m.pressDetail(key)
	}
	switch key {
	case "q", "ctrl+c":
		return tea.Quit
	case "1", "2", "3", "4", "5", "6", "7", "8":
		m.showTab(int(key[0] - '1'))
	case "tab", "right", "l":
		m.showTab((m.tab + 1) % tabs)
	case "shift+tab", "left", "h":
		m.showTab((m.tab + tabs - 1) % tabs)
	case "/":
		m.typing = true
	case "esc":
		m.back()
	case "s":
		m.sortNext()
	case "S":
		m.descending[m.tab] = !m.descending[m.tab]
	case "enter", "e":
		return m.open()
	case "?":
		m.detail = &detail{title: "Keys", lines: strings.Split(Keys, "\n")}
	default:
		m.cursors[m.tab] = m.moved(key, m.cursors[m.tab], len(m.lines))
	}
	return nil
}

// moved is the line to which a key moves from a line.
func (m *Model) moved(key string, at, lines int) int {
	page := max(1, m.rows()-1)
	switch key {
	case "up", "k":
		return at - 1
	case "down", "j":
		return at + 1
	case "pgup":
		return at - page
	case "pgdown", "space":
		return at + page
	case "home", "g":
		return 0
	case "end", "G":
		return lines - 1
	}
	return at
}

// Keys is the help of the live view.
const Keys = `1 to 8, Tab     Map, Nodes, Jobs, Queue, Gangs, Warnings, Namespaces, Kueue
Up, Down, PgUp, PgDn, Home, End
Enter           pods of a node; workloads of a namespace or of a queue of Kueue;
                why a pod, a gang or a workload waits or is where it is
/               show only what contains a text; Esc shows all again
s, S            sort by the next column; turn the order round
Esc             back
q               leave`

func (m *Model) typeFilter(key tea.KeyPressMsg) {
	switch key.String() {
	case "enter":
		m.typing = false
	case "esc", "ctrl+c":
		m.typing, m.filter = false, ""
	case "backspace":
		if runes := []rune(m.filter); len(runes) > 0 {
			m.filter = string(runes[:len(runes)-1])
		}
	default:
		m.filter += key.Text
	}
	m.cursors[m.tab] = 0
}

// showTab shows a tab without a scope.
func (m *Model) showTab(tab int) { m.tab, m.scope = tab, nil }

// back removes the filter or, without one, the scope.
func (m *Model) back() {
	if m.filter == "" && m.scope != nil {
		m.showTab(m.scope.from)
	}
	m.filter = ""
}

// open shows details of the chosen entry.
func (m *Model) open() tea.Cmd {
	if len(m.lines) == 0 {
		return nil
	}
	e := m.lines[m.cursors[m.tab]]
	switch e.Kind {
	case overview.NodeKind:
		m.detail = m.podsOf(e.Name)
		return nil
	case overview.NamespaceKind, overview.QueueKind:
		m.scope = &scope{of: e, from: m.tab}
		m.tab, m.filter, m.cursors[tabJobs] = tabJobs, "", 0
		return nil
	}
	return m.explain(e.Kind, e.Namespace, e.Name)
}

func (m *Model) explain(kind, namespace, name string) tea.Cmd {
	if kind == "" || m.source.Explain == nil {
		return nil
	}
	title := kind + " " + namespace + "/" + name
	m.detail = &detail{title: title, lines: []string{"Reading the cluster and running its scheduler on the copy …"},
		back: m.detail}
	ctx, source, width := m.ctx, m.source, m.width
	return func() tea.Msg {
		text, err := source.Explain(ctx, kind, namespace, name, width)
		return explained{title, text, err}
	}
}

// showExplanation shows an explanation unless the user has left it.
func (m *Model) showExplanation(answer explained) {
	if m.detail == nil || m.detail.title != answer.title {
		return
	}
	if answer.err != nil {
		answer.text = m.screen.Paint(tables.Red, answer.err.Error())
	}
	// Tables fit already, but sentences have to be wrapped.
	text := tables.Screen{Width: m.width}.Wrap(strings.TrimRight(answer.text, "\n"))
	m.detail.lines = strings.Split(text, "\n")
}

func (m *Model) podsOf(node string) *detail {
	d := &detail{title: "node " + node, pods: m.source.PodsOn(node).Rows}
	for _, p := range d.pods {
		d.lines = append(d.lines, podLine(p.Cells))
	}
	if len(d.lines) == 0 {
		d.lines = []string{"no pods"}
	}
	return d
}

func (m *Model) pressDetail(key string) tea.Cmd {
	d := m.detail
	switch key {
	case "q", "esc", "left", "h", "backspace":
		m.detail = d.back
	case "ctrl+c":
		return tea.Quit
	case "1", "2", "3", "4", "5", "6", "7", "8", "tab", "shift+tab":
		m.detail = nil
		return m.press(key)
	case "enter", "e":
		if d.at < len(d.pods) {
			return m.explain("pod", d.pods[d.at].Namespace, d.pods[d.at].Name)
		}
	default:
		d.at = m.moved(key, d.at, len(d.lines))
	}
	d.at = min(max(0, d.at), len(d.lines)-1)
	return nil
}

// keepChosen changes the list and moves the cursor with the chosen entry.
func (m *Model) keepChosen(change func()) {
	var chosen entry
	if at := m.cursors[m.tab]; at < len(m.lines) {
		chosen = m.lines[at]
	}
	change()
	m.arrange()
	if i := slices.IndexFunc(m.lines, func(e entry) bool {
		return e.Kind == chosen.Kind && e.Namespace == chosen.Namespace && e.Name == chosen.Name
	}); i >= 0 && chosen.Kind != "" {
		m.cursors[m.tab] = i
	}
}

// arrange filters and sorts the lines of the tab, and scrolls to the chosen one.
func (m *Model) arrange() {
	m.columns, m.lines = m.entries()
	if m.filter != "" {
		wanted := strings.ToLower(m.filter)
		m.lines = slices.DeleteFunc(m.lines,
			func(e entry) bool { return !strings.Contains(strings.ToLower(strings.Join(e.cells, " ")), wanted) })
	}
	if by := m.sorted[m.tab]; by >= 0 && by < len(m.columns) {
		slices.SortStableFunc(m.lines, func(x, y entry) int {
			order := compareValues(x.Cells[by], y.Cells[by])
			if m.descending[m.tab] {
				return -order
			}
			return order
		})
	}
	cursor, top := &m.cursors[m.tab], &m.tops[m.tab]
	*cursor = min(max(0, *cursor), max(0, len(m.lines)-1))
	if m.tab != tabMap {
		*top = min(max(*top, *cursor-m.rows()+1), *cursor)
	}
}

// compareValues orders numbers by size and other values as text.
func compareValues(x, y any) int {
	if a, ok := number(x); ok {
		if b, ok := number(y); ok {
			return cmp.Compare(a, b)
		}
	}
	return cmp.Compare(fmt.Sprint(x), fmt.Sprint(y))
}

func number(v any) (float64, bool) {
	switch value := reflect.ValueOf(v); {
	case value.CanInt():
		return float64(value.Int()), true
	case value.CanFloat():
		return value.Float(), true
	}
	return 0, false
}
