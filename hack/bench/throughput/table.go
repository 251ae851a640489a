package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"berth.dev/berth/hack/bench/rig"
)

// column is a figure of the table.
type column struct {
	title  string
	format string
	of     func(*run) float64
	// againstStock divides by the figure of stock in the same repeat.
	againstStock bool
}

func cpuMillisPerPod(r *run) float64 { return r.CPUMillisPerPod }
func podsPerSecond(r *run) float64   { return r.PodsPerSecond }

var columns = []column{
	{"CPU\nms/pod", "%.2f", cpuMillisPerPod, false},
	{"CPU\n× stock", "%.2f", cpuMillisPerPod, true},
	{"\npods/s", "%.0f", podsPerSecond, false},
	{"pods/s\n× stock", "%.2f", podsPerSecond, true},
	{"algorithm,\nmedian ms", "%.2f", func(r *run) float64 { return r.AlgorithmMedianMillis }, false},
	{"allocations\n/pod", "%.0f", func(r *run) float64 { return r.AllocationsPerPod }, false},
	{"allocated\nKiB/pod", "%.0f", func(r *run) float64 { return r.AllocatedKiBPerPod }, false},
	{"peak RSS\nMiB", "%.0f", func(r *run) float64 { return r.PeakResidentMiB }, false},
	{"peak heap\nMiB", "%.0f", func(r *run) float64 { return r.PeakHeapMiB }, false},
	{"other work\ncores", "%.2f", func(r *run) float64 { return r.OtherCores }, false},
}

// cell is the spread of a figure of a contender in a group; a dash where nothing was measured.
func (c *column) cell(runs []run, g group, contender string) string {
	list := values(runs, g, contender, c.of)
	if c.againstStock {
		list = ratios(runs, g, contender, c.of)
	}
	if len(list) == 0 {
		return "-"
	}
	return rig.SpreadOf(list).Text(c.format)
}

// contendersOf are the contenders of the runs, in the order in which they were first measured.
func contendersOf(runs []run) []string {
	var names []string
	for i := range runs {
		if !slices.Contains(names, runs[i].Contender) {
			names = append(names, runs[i].Contender)
		}
	}
	return names
}

// writeTables writes a table for each group: medians, with the least and the most in brackets.
func writeTables(out io.Writer, runs []run) error {
	for _, g := range groupsOf(runs) {
		t := table.NewWriter()
		t.SetStyle(table.StyleLight)
		t.Style().Format.Header = text.FormatDefault
		header := table.Row{g.workload}
		configs := []table.ColumnConfig{}
		for i, c := range columns {
			header = append(header, c.title)
			configs = append(configs, table.ColumnConfig{Number: i + 2, Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
		t.AppendHeader(header)
		t.SetColumnConfigs(configs)
		pods, repeats := 0, 0
		for _, contender := range contendersOf(runs) {
			measured := len(values(runs, g, contender, func(*run) float64 { return 0 }))
			if measured == 0 {
				continue
			}
			repeats = max(repeats, measured)
			row := table.Row{contender}
			for i := range columns {
				row = append(row, columns[i].cell(runs, g, contender))
			}
			t.AppendRow(row)
		}
		for i := range runs {
			if runs[i].group() == g {
				pods = runs[i].Pods
			}
		}
		if _, err := fmt.Fprintf(out, "%d nodes, %d pods (%s); median of %d runs, least to most in brackets\n%s\n\n",
			g.nodes, pods, g.workload, repeats, t.Render()); err != nil {
			return fmt.Errorf("printing the table: %w", err)
		}
	}
	return nil
}

// results are every run, and what all have in common.
type results struct {
	SchedulerEnv []string `json:"schedulerEnv,omitempty"`
	FeatureGates []string `json:"featureGates,omitempty"`
	Runs         []run    `json:"runs"`
}
