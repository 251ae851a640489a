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
	title, format string
	of            func(*run) float64
}

var columns = []column{
	{"pods/s", "%.0f", func(r *run) float64 { return r.PodsPerSecond }},
	{"attempt,\nmedian ms", "%.1f", func(r *run) float64 { return r.AttemptMedianMillis }},
	{"attempt,\np99 ms", "%.0f", func(r *run) float64 { return r.AttemptP99Millis }},
	{"seconds", "%.0f", func(r *run) float64 { return r.Seconds }},
	{"other work,\ncores", "%.2f", func(r *run) float64 { return r.OtherCores }},
}

// values are a figure of the runs of a contender on a case.
func values(runs []run, of, contender string, figure func(*run) float64) []float64 {
	var list []float64
	for i := range runs {
		if runs[i].Case == of && runs[i].Contender == contender {
			list = append(list, figure(&runs[i]))
		}
	}
	return list
}

// ratios are the pods per second of a contender on a case, each over those of stock in the same repeat.
func ratios(runs []run, of, contender string) []float64 {
	base := map[int]float64{}
	for i := range runs {
		if runs[i].Case == of && runs[i].Contender == stock {
			base[runs[i].Repeat] = runs[i].PodsPerSecond
		}
	}
	var list []float64
	for i := range runs {
		if r := &runs[i]; r.Case == of && r.Contender == contender && base[r.Repeat] > 0 {
			list = append(list, r.PodsPerSecond/base[r.Repeat])
		}
	}
	return list
}

// cell is the spread of values; a dash where there are none.
func cell(values []float64, format string) string {
	if len(values) == 0 {
		return "-"
	}
	return rig.SpreadOf(values).Text(format)
}

// writeTable writes a row for each contender on each case: medians, with the least and the most in brackets.
func writeTable(out io.Writer, runs []run) error {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	header := table.Row{"case", "contender", "pods/s ×\nstock", "upstream's\nthreshold"}
	for _, c := range columns {
		header = append(header, c.title)
	}
	t.AppendHeader(header)
	configs := []table.ColumnConfig{{Number: 1, AutoMerge: true}}
	for i := 3; i <= len(header); i++ {
		configs = append(configs, table.ColumnConfig{Number: i, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(configs)
	var rows []string
	for i := range runs {
		r := &runs[i]
		key := r.Case + " " + r.Contender
		if slices.Contains(rows, key) {
			continue
		}
		rows = append(rows, key)
		threshold := "-"
		if r.Threshold > 0 {
			threshold = fmt.Sprintf("%.0f", r.Threshold)
		}
		row := table.Row{r.Case, r.Contender, cell(ratios(runs, r.Case, r.Contender), "%.2f"), threshold}
		for _, c := range columns {
			row = append(row, cell(values(runs, r.Case, r.Contender, c.of), c.format))
		}
		t.AppendRow(row)
	}
	if _, err := fmt.Fprintln(out, t.Render()); err != nil {
		return fmt.Errorf("printing the table: %w", err)
	}
	return nil
}
