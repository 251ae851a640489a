package overview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/screen/tables"
)

// Row is an entry of a list, for terminals and pages alike.
type Row struct {
	Cells []any
	// Kind, Namespace and Name are what opens with the row: a node, a namespace, a queue, or an object by its kind for
	// berth explain. With an empty kind nothing opens.
	Kind, Namespace, Name string
}

// List is a table of the overview.
type List struct {
	Columns []tables.Column
	Rows    []Row
}

// The kinds of rows that do not open an explanation.
const (
	NodeKind      = "node"
	NamespaceKind = "namespace"
	QueueKind     = "queue"
)

// Cells that are sorted by number and shown as text.
type (
	gpus    int64 // in milli-GPU
	tenths  int64 // in milli-GPU, shown to a tenth of a GPU
	cores   int64 // in milli-cores
	dollars int64 // in micro-dollars
	seconds float64
)

func (g gpus) String() string    { return GPUs(int64(g)) }
func (t tenths) String() string  { return Roughly(int64(t)) }
func (c cores) String() string   { return fmt.Sprintf("%.1f", float64(c)/1000) }
func (d dollars) String() string { return Dollars(price.MicroDollars(d)) }
func (s seconds) String() string { return tables.Seconds(float64(s)) }

// listOf makes a row of each entry.
func listOf[T any](columns []tables.Column, entries []T, row func(*T) Row) List {
	l := List{Columns: columns, Rows: make([]Row, len(entries))}
	for i := range entries {
		l.Rows[i] = row(&entries[i])
	}
	return l
}

// explainedKinds are the kinds of workloads that berth explain knows, with their names there.
var explainedKinds = map[string]string{
	"Pod": "pod", "PodGroup": "podgroup", "Job": "job", "Deployment": "deployment", "StatefulSet": "statefulset",
	"ReplicaSet": "replicaset",
}

// Explained reports whether berth explain knows the kind of a row.
func Explained(kind string) bool {
	return slices.Contains(slices.Collect(maps.Values(explainedKinds)), kind)
}

// JobRows are workloads as a list.
func JobRows(jobs []Job) List {
	return listOf([]tables.Column{{Name: "Name"}, {Name: "Kind", Extra: true}, {Name: "State"},
		{Name: "Pods", Number: true}, {Name: "GPUs", Number: true}, {Name: "Where"}, {Name: "Age", Number: true},
		{Name: "Queue", Extra: true}, {Name: "Reason"}}, jobs, func(j *Job) Row {
		r := Row{Namespace: j.Namespace, Name: j.Name, Cells: []any{j.Namespace + "/" + j.Name, j.Kind, j.State,
			fmt.Sprintf("%d/%d", j.Scheduled, cmp.Or(j.Pods, j.MinMember)), gpus(j.MilliGPU), j.Where(),
			seconds(j.AgeSeconds), j.Queue.String(), tables.Shorten(j.Why())}}
		if j.Pods > 0 {
			r.Kind = explainedKinds[j.Kind]
		}
		return r
	})
}

// QueueRows are pods and gangs without a node as a list.
func QueueRows(queue []Waiting) List {
	return listOf([]tables.Column{{Name: "#", Number: true}, {Name: "Name"}, {Name: "Pods", Number: true},
		{Name: "GPUs", Number: true}, {Name: "Priority", Number: true, Extra: true}, {Name: "Waiting", Number: true},
		{Name: "Scheduler", Extra: true}, {Name: "Reason"}}, queue, func(w *Waiting) Row {
		var position any = "-"
		if w.Position > 0 {
			position = w.Position
		}
		return Row{Kind: "pod", Namespace: w.Namespace, Name: w.Pod, Cells: []any{position, w.Title(), w.Pods,
			gpus(w.MilliGPU), w.Priority, seconds(w.WaitSeconds), w.Scheduler, tables.Shorten(w.Why())}}
	})
}

// GangRows are gangs as a list.
func GangRows(gangs []Gang) List {
	return listOf([]tables.Column{{Name: "Gang"}, {Name: "On nodes", Number: true}, {Name: "Needs", Number: true},
		{Name: "Members", Number: true}, {Name: "GPUs", Number: true}, {Name: "Nodes", Number: true, Extra: true},
		{Name: "Phase", Extra: true}, {Name: "Waiting", Number: true}, {Name: "Reason"}}, gangs, func(g *Gang) Row {
		var waiting any = "-"
		if !g.Started {
			waiting = seconds(g.WaitSeconds)
		}
		return Row{Kind: "podgroup", Namespace: g.Namespace, Name: g.Name, Cells: []any{g.Namespace + "/" + g.Name,
			g.Scheduled, g.MinMember, g.Members, gpus(g.MilliGPU), g.Nodes, g.Phase, waiting, tables.Shorten(g.Lacks())}}
	})
}

// WarningRows are the warnings as a list.
func (c *Cluster) WarningRows() List {
	return listOf([]tables.Column{{Name: "Last seen", Number: true}, {Name: "Times", Number: true, Extra: true},
		{Name: "Object"}, {Name: "Reason"}, {Name: "Message"}}, c.Warnings, func(w *Warning) Row {
		r := Row{Cells: []any{seconds(max(0, c.Taken.Sub(w.Time)).Truncate(time.Second).Seconds()), w.Count, w.Title(),
			w.Reason, w.Brief()}}
		if name, ok := strings.CutPrefix(w.Object, "Pod/"); ok {
			r.Kind, r.Namespace, r.Name = "pod", w.Namespace, name
		}
		return r
	})
}

// NodeRows are nodes as a list; the second cell has the GPUs.
func NodeRows(nodes []Node) List {
	level := LevelOf(nodes)
	return listOf([]tables.Column{{Name: "Node"}, {Name: "GPUs"}, {Name: "Used", Number: true},
		{Name: "Stranded", Number: true}, {Name: "Free cores", Number: true}, {Name: "Pods", Number: true, Extra: true},
		{Name: "$/h", Number: true, Extra: true}, {Name: "Idle $/h", Number: true}, {Name: "Model", Extra: true},
		{Name: cmp.Or(level, "Domain"), Extra: true}, {Name: "State"}}, nodes, func(n *Node) Row {
		var cost, idle any = "-", "-"
		if n.Priced {
			cost, idle = dollars(n.MicroDollarsPerHour), dollars(n.IdleMicroDollarsPerHour)
		}
		return Row{Kind: NodeKind, Name: n.Name, Cells: []any{n.Name, n, gpus(n.AllocatedMilliGPU),
			tenths(n.StrandedMilliGPU), cores(n.FreeCPUMilli), n.Pods, cost, idle, n.Model,
			strings.TrimPrefix(n.Domain.String(), level+"="), n.State}}
	})
}

// NamespaceRows are the namespaces as a list.
func (c *Cluster) NamespaceRows() List {
	return listOf([]tables.Column{{Name: "Namespace"}, {Name: "Workloads", Number: true}, {Name: "Pods", Number: true},
		{Name: "GPUs", Number: true}, {Name: "Pending pods", Number: true}, {Name: "Pending GPUs", Number: true},
		{Name: "$/h", Number: true}, {Name: "Waiting"}}, c.Namespaces, func(n *Namespace) Row {
		r := Row{Kind: NamespaceKind, Name: n.Name}
		count, waiting := r.waiting(c.Jobs)
		r.Cells = []any{n.Name, count, n.Pods, gpus(n.MilliGPU), n.PendingPods, gpus(n.PendingMilliGPU),
			dollars(n.MicroDollarsPerHour), waiting}
		return r
	})
}

// KueueRows are queues of Kueue as a list, with the workloads that wait in them.
func KueueRows(queues []Queue, jobs []Job) List {
	return listOf([]tables.Column{{Name: "Queue"}, {Name: "Cluster queue", Extra: true}, {Name: "Pending", Number: true},
		{Name: "Admitted", Number: true}, {Name: "GPUs used", Number: true}, {Name: "Quota", Number: true},
		{Name: "Borrowed", Number: true}, {Name: "Waiting", Extra: true}}, queues, func(q *Queue) Row {
		var quota, borrowed any = "?", "?"
		if q.QuotaGPUs >= 0 {
			quota, borrowed = q.QuotaGPUs, q.BorrowedGPUs
		}
		r := Row{Kind: QueueKind, Namespace: q.Namespace, Name: q.Name}
		_, waiting := r.waiting(jobs)
		r.Cells = []any{q.Namespace + "/" + q.Name, q.ClusterQueue, q.Pending, q.Admitted, q.UsedGPUs, quota, borrowed,
			waiting}
		return r
	})
}

// PodsOn are the pods on a node as a list, those with the most GPUs first.
func (s *Store) PodsOn(node string, now time.Time) List {
	s.mu.Lock()
	defer s.mu.Unlock()
	pods := s.snapshot().nodeNamed(node).pods
	slices.SortFunc(pods, func(x, y *podEntry) int {
		return cmp.Or(-cmp.Compare(x.milli, y.milli), cmp.Compare(x.pod.Namespace, y.pod.Namespace),
			compareNames(x.pod.Name, y.pod.Name))
	})
	return listOf([]tables.Column{{Name: "Pod"}, {Name: "GPUs", Number: true}, {Name: "Devices"}, {Name: "Gang"},
		{Name: "Priority", Number: true}, {Name: "Age", Number: true}}, pods, func(of **podEntry) Row {
		p, pod, devices := *of, (*of).pod, ""
		if assigned := gpuview.AssignedDevices(pod); len(assigned) > 0 {
			devices = fmt.Sprint(assigned)
		}
		return Row{Kind: "pod", Namespace: pod.Namespace, Name: pod.Name, Cells: []any{pod.Namespace + "/" + pod.Name,
			gpus(p.milli), devices, p.gang.Name, corev1helpers.PodPriority(pod),
			seconds(now.Sub(pod.CreationTimestamp.Time).Seconds())}}
	})
}

// Has reports whether a workload belongs to the namespace, or to the queue of Kueue.
func (r *Row) Has(j *Job) bool {
	if r.Kind == NamespaceKind {
		return j.Namespace == r.Name
	}
	return j.Namespace == r.Namespace && j.Queue != nil && j.Queue.Name == r.Name
}

// waiting counts the workloads of a namespace or a queue, and names those that neither start nor run.
func (r *Row) waiting(jobs []Job) (count int, names string) {
	var waiting []string
	for i := range jobs {
		if !r.Has(&jobs[i]) {
			continue
		}
		count++
		if state := jobs[i].State; state != JobStarting && state != JobRunning {
			waiting = append(waiting, jobs[i].Name)
		}
	}
	return count, strings.Join(waiting, ", ")
}
