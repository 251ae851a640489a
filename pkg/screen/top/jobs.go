package top

import (
	"cmp"
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
	s := &sheet{screen: tables.ScreenOf(out)}
	s.lines(prefixed("left out: ", list.LeftOut)...)
	if len(list.Jobs) == 0 {
		s.lines("no workloads")
	} else {
		rows := overview.JobRows(list.Jobs)
		several := slices.ContainsFunc(list.Jobs, func(j overview.Job) bool { return j.Namespace != list.Jobs[0].Namespace })
		table := tables.New(s.screen, rows.Columns...)
		for i, row := range rows.Rows {
			if !several {
				row.Cells[0] = list.Jobs[i].Name
			}
			table.Row(row.Cells...)
		}
		s.WriteString(table.String())
	}
	s.section("Queues of Kueue", overview.KueueRows(list.Queues, list.Jobs), 0, "")
	return s.print(out, "workloads")
}

// mostWaiting is how many waiting workloads a status shows.
const mostWaiting = 8

// Status writes a summary of a cluster.
func Status(out io.Writer, c *overview.Cluster, status *overview.Status) error {
	s, totals := &sheet{screen: tables.ScreenOf(out)}, c.Lines()
	var states []string
	for _, state := range []overview.JobState{
		overview.JobRunning, overview.JobStarting, overview.JobPartial, overview.JobPending, overview.JobQueued,
		overview.JobSuspended, overview.JobNoPods, overview.JobGated,
	} {
		if n := status.JobsByState[state]; n > 0 {
			states = append(states, fmt.Sprintf("%d %s", n, state.Words()))
		}
	}
	s.lines("scheduler  "+status.Scheduler.Message, "GPUs       "+totals[0], "nodes      "+totals[1],
		"pods       "+totals[2], "workloads  "+cmp.Or(strings.Join(states, ", "), "none"))
	s.lines(prefixed("left out   ", status.LeftOut)...)
	n := len(status.Waiting)
	s.section(fmt.Sprintf("%s without all of %s pods", plural.Of(n, "workload"), plural.Choose(n, "its", "their")),
		overview.JobRows(status.Waiting), mostWaiting, "berth jobs -A")
	return s.print(out, "status")
}
