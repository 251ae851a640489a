package top

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"berth.dev/berth/pkg/overview"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/tables"
)

var jobColumns = []tables.Column{{Name: "Name"}, {Name: "Kind", Extra: true}, {Name: "State"},
	{Name: "Pods", Number: true},
	{Name: "GPUs", Number: true}, {Name: "Where"}, {Name: "Age", Number: true}, {Name: "Queue", Extra: true},
	{Name: "Reason"}}

// explainedKinds are the kinds of workloads that can be explained, as the command calls them.
var explainedKinds = map[string]string{
	"Pod": "pod", "PodGroup": "podgroup", "Job": "job", "Deployment": "deployment", "StatefulSet": "statefulset",
	"ReplicaSet": "replicaset",
}

func jobCells(j *overview.Job) []any {
	pods := fmt.Sprintf("%d/%d", j.Scheduled, j.Pods)
	return []any{j.Namespace + "/" + j.Name, j.Kind, j.State, pods, gpus(j.MilliGPU), j.Where(), seconds(j.AgeSeconds),
		j.Queue.String(), j.Why()}
}

var kueueColumns = []tables.Column{{Name: "Queue"}, {Name: "Cluster queue", Extra: true},
	{Name: "Pending", Number: true},
	{Name: "Admitted", Number: true}, {Name: "GPUs used", Number: true}, {Name: "Quota", Number: true},
	{Name: "Borrowed", Number: true}}

func kueueCells(q *overview.Queue) []any {
	var quota, borrowed any = "?", "?"
	if q.QuotaGPUs >= 0 {
		quota, borrowed = q.QuotaGPUs, q.BorrowedGPUs
	}
	return []any{q.Namespace + "/" + q.Name, q.ClusterQueue, q.Pending, q.Admitted, q.UsedGPUs, quota, borrowed}
}

// Jobs writes workloads and queues as tables.
func Jobs(out io.Writer, list *overview.JobList) error {
	screen := tables.ScreenOf(out)
	var b strings.Builder
	for _, line := range list.LeftOut {
		b.WriteString(screen.Wrap("left out: "+line) + "\n")
	}
	if len(list.Jobs) == 0 {
		b.WriteString("no workloads\n")
	} else {
		table := tables.New(screen, jobColumns...)
		several := slices.ContainsFunc(list.Jobs, func(j overview.Job) bool { return j.Namespace != list.Jobs[0].Namespace })
		for i := range list.Jobs {
			cells := jobCells(&list.Jobs[i])
			if !several {
				cells[0] = list.Jobs[i].Name
			}
			table.Row(cells...)
		}
		b.WriteString(table.String())
	}
	section(&b, screen, "Queues of Kueue", len(list.Queues), 0, kueueColumns,
		func(i int) []any { return kueueCells(&list.Queues[i]) })
	if _, err := io.WriteString(out, b.String()); err != nil {
		return fmt.Errorf("printing the workloads: %w", err)
	}
	return nil
}

// mostWaiting is how many workloads that wait are on the screen of a status.
const mostWaiting = 8

// Status writes a cluster on one screen.
func Status(out io.Writer, c *overview.Cluster, s *overview.Status) error {
	screen := tables.ScreenOf(out)
	var b strings.Builder
	lines := c.Lines()
	var states []string
	for _, state := range []overview.JobState{
		overview.JobRunning, overview.JobStarting, overview.JobPartial, overview.JobPending, overview.JobQueued,
		overview.JobSuspended,
		overview.JobGated,
	} {
		if n := s.JobsByState[state]; n > 0 {
			states = append(states, fmt.Sprintf("%d %s", n, strings.ToLower(string(state))))
		}
	}
	workloads := strings.Join(states, ", ")
	if workloads == "" {
		workloads = "none"
	}
	for _, line := range slices.Concat([]string{"scheduler  " + s.Scheduler.Message, "GPUs       " + lines[0],
		"nodes      " + lines[1],
		"pods       " + lines[2], "workloads  " + workloads}, prefixed("left out   ", s.LeftOut)) {
		b.WriteString(screen.Wrap(line) + "\n")
	}
	section(&b, screen, plural.Of(len(s.Waiting), "workload")+" without all of its pods", len(s.Waiting), mostWaiting,
		jobColumns,
		func(i int) []any { return jobCells(&s.Waiting[i]) })
	if _, err := io.WriteString(out, b.String()); err != nil {
		return fmt.Errorf("printing the status: %w", err)
	}
	return nil
}
