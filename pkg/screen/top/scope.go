package top

import "berth.dev/berth/pkg/cluster/overview"

// scope narrows the workloads to those of a namespace or of a queue.
type scope struct {
	title string
	has   func(*overview.Job) bool
	from  int // the tab to go back to
}

// turnTo shows a tab with all that it has.
func (m *Model) turnTo(tab int) { m.tab, m.scope = tab, nil }

// narrow shows the workloads of an entry.
func (m *Model) narrow(e entry) {
	m.scope = &scope{title: e.Kind + " " + e.Name, has: e.Has, from: m.tab}
	m.tab, m.filter, m.cursors[tabJobs] = tabJobs, "", 0
}

// back takes the filter away, and then the scope.
func (m *Model) back() {
	if m.filter == "" && m.scope != nil {
		m.turnTo(m.scope.from)
	}
	m.filter = ""
}
