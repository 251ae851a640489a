package top

import (
	"slices"
	"strings"

	"berth.dev/berth/pkg/overview"
	"berth.dev/berth/pkg/tables"
)

// The kinds of entries that open something else than an explanation.
const (
	kindNode, kindNamespace, kindQueue = "node", "namespace", "queue"
)

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
	m.scope = &scope{title: e.kind + " " + e.name, has: workloadsOf(e), from: m.tab}
	m.tab, m.filter, m.cursors[tabJobs] = tabJobs, "", 0
}

// back takes the filter away, and then the scope.
func (m *Model) back() {
	if m.filter == "" && m.scope != nil {
		m.turnTo(m.scope.from)
	}
	m.filter = ""
}

// workloadsOf says whether a workload belongs to a namespace, or to a queue of Kueue.
func workloadsOf(e entry) func(*overview.Job) bool {
	return func(j *overview.Job) bool {
		if e.kind == kindNamespace {
			return j.Namespace == e.name
		}
		return j.Namespace == e.namespace && j.Queue != nil && j.Queue.Name == e.name
	}
}

var namespaceColumns = []tables.Column{
	{Name: "Namespace"}, {Name: "Workloads", Number: true}, {Name: "Pods", Number: true}, {Name: "GPUs", Number: true},
	{Name: "Pending pods", Number: true}, {Name: "Pending GPUs", Number: true}, {Name: "$/h", Number: true},
	{Name: "Waiting"},
}

func namespaceCells(n *overview.Namespace, jobs []overview.Job) []any {
	count, waiting := waitingOf(entry{kind: kindNamespace, name: n.Name}, jobs)
	return []any{n.Name, count, n.Pods, gpus(n.MilliGPU), n.PendingPods, gpus(n.PendingMilliGPU),
		dollars(n.MicroDollarsPerHour), waiting}
}

// queuesWithWaiting are the columns of queues where there is room for the workloads that wait in them.
var queuesWithWaiting = append(slices.Clone(kueueColumns), tables.Column{Name: "Waiting"})

func waitingCells(q *overview.Queue, jobs []overview.Job) []any {
	_, waiting := waitingOf(entry{kind: kindQueue, namespace: q.Namespace, name: q.Name}, jobs)
	return append(kueueCells(q), waiting)
}

// waitingOf counts the workloads of a namespace or a queue, and names those with pods that have no node.
func waitingOf(e entry, jobs []overview.Job) (count int, waiting string) {
	has := workloadsOf(e)
	var names []string
	for i := range jobs {
		if !has(&jobs[i]) {
			continue
		}
		count++
		if state := jobs[i].State; state != overview.JobStarting && state != overview.JobRunning {
			names = append(names, jobs[i].Name)
		}
	}
	return count, strings.Join(names, ", ")
}
