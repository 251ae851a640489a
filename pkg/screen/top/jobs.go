package top

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"berth.dev/berth/pkg/cluster/overview"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/screen/tables"
)

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
		rows := overview.JobRows(list.Jobs)
		several := slices.ContainsFunc(list.Jobs, func(j overview.Job) bool { return j.Namespace != list.Jobs[0].Namespace })
		table := tables.New(screen, rows.Columns...)
		for i, row := range rows.Rows {
			if !several {
				row.Cells[0] = list.Jobs[i].Name
			}
			table.Row(row.Cells...)
		}
		b.WriteString(table.String())
	}
	section(&b, screen, "Queues of Kueue", overview.KueueRows(list.Queues, list.Jobs), 0, "")
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
		overview.JobSuspended, overview.JobNoPods, overview.JobGated,
	} {
		if n := s.JobsByState[state]; n > 0 {
			states = append(states, fmt.Sprintf("%d %s", n, state.Words()))
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
	section(&b, screen, plural.Of(len(s.Waiting), "workload")+" without all of its pods", overview.JobRows(s.Waiting),
		mostWaiting, "berth jobs -A")
	if _, err := io.WriteString(out, b.String()); err != nil {
		return fmt.Errorf("printing the status: %w", err)
	}
	return nil
}
