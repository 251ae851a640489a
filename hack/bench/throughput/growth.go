package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// writeGrowth writes one table of the scheduler's CPU time per pod, with a row for each size of the cluster and a
// column for each workload of each contender: the figures that the plot shows. A single size has no growth.
func writeGrowth(out io.Writer, runs []run) error {
	var nodes []int
	var workloads []string
	for _, g := range groupsOf(runs) {
		if !slices.Contains(nodes, g.nodes) {
			nodes = append(nodes, g.nodes)
		}
		if !slices.Contains(workloads, g.workload) {
			workloads = append(workloads, g.workload)
		}
	}
	if len(nodes) < 2 {
		return nil
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	header := table.Row{"nodes"}
	configs := []table.ColumnConfig{{Number: 1, Align: text.AlignRight, AlignHeader: text.AlignRight}}
	for _, w := range workloads {
		for _, c := range contendersOf(runs) {
			header = append(header, w+",\n"+c)
			configs = append(configs, table.ColumnConfig{Number: len(header), Align: text.AlignRight,
				AlignHeader: text.AlignRight})
		}
	}
	t.AppendHeader(header)
	t.SetColumnConfigs(configs)
	cpu := column{format: "%.2f", of: cpuMillisPerPod}
	for _, n := range nodes {
		row := table.Row{thousands(n)}
		for _, w := range workloads {
			for _, c := range contendersOf(runs) {
				row = append(row, cpu.cell(runs, group{n, w}, c))
			}
		}
		t.AppendRow(row)
	}
	if _, err := fmt.Fprintf(out, "CPU ms/pod as the cluster grows; medians, least to most in brackets\n%s\n\n",
		t.Render()); err != nil {
		return fmt.Errorf("printing the table: %w", err)
	}
	return nil
}
