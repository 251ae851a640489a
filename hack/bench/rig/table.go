package rig

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Figure is a column of a table, and how it is read off a run. NaN and infinity say that the run does not have it.
type Figure[R any] struct {
	Title, Format string
	Of            func(R) float64
}

// Column is a figure by its title and format.
func Column[R any](title, format string, of func(R) float64) Figure[R] {
	return Figure[R]{title, format, of}
}

// Group are the runs of one row.
type Group[R any] struct {
	// Key is what the runs have in common.
	Key  []string
	Runs []R
}

// Groups puts runs with the same key together, in the order in which the keys come first.
func Groups[R any](runs []R, key func(R) []string) []Group[R] {
	var groups []Group[R]
	for _, r := range runs {
		k := key(r)
		i := slices.IndexFunc(groups, func(g Group[R]) bool { return slices.Equal(g.Key, k) })
		if i < 0 {
			i, groups = len(groups), append(groups, Group[R]{Key: k})
		}
		groups[i].Runs = append(groups[i].Runs, r)
	}
	return groups
}

// Values are a figure of the runs that have it.
func (g Group[R]) Values(of func(R) float64) []float64 {
	var values []float64
	for _, r := range g.Runs {
		if v := of(r); !math.IsNaN(v) && !math.IsInf(v, 0) {
			values = append(values, v)
		}
	}
	return values
}

// Table prints a row for each key of the runs: the key, whose parts are titled by heads, and of each figure the median
// with the least and the most in brackets.
func Table[R any](out io.Writer, heads []string, key func(R) []string, figures []Figure[R], runs []R) error {
	header, rows := table.Row{}, []table.Row{}
	for _, title := range heads {
		header = append(header, title)
	}
	for _, f := range figures {
		header = append(header, f.Title)
	}
	for _, g := range Groups(runs, key) {
		row := table.Row{}
		for _, part := range g.Key {
			row = append(row, part)
		}
		for _, f := range figures {
			row = append(row, Cell(f.Format, g.Values(f.Of)))
		}
		rows = append(rows, row)
	}
	return render(out, header, len(heads), rows)
}

// render prints a table whose columns from one on are aligned to the right.
func render(out io.Writer, header table.Row, right int, rows []table.Row) error {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(header)
	t.AppendRows(rows)
	var configs []table.ColumnConfig
	for i := right; i < len(header); i++ {
		configs = append(configs, table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(configs)
	if _, err := fmt.Fprintln(out, t.Render()); err != nil {
		return fmt.Errorf("printing the table: %w", err)
	}
	return nil
}

// Pivot prints one figure: a row for each row key, and a column for each column key.
func Pivot[R any](out io.Writer, head string, row, column func(R) string, figure Figure[R], runs []R) error {
	one := func(key func(R) string) func(R) []string { return func(r R) []string { return []string{key(r)} } }
	header, rows := table.Row{head}, []table.Row{}
	columns := Groups(runs, one(column))
	for _, c := range columns {
		header = append(header, strings.Join(c.Key, ""))
	}
	for _, g := range Groups(runs, one(row)) {
		cells := table.Row{g.Key[0]}
		for _, c := range columns {
			both := Group[R]{Runs: slices.DeleteFunc(slices.Clone(g.Runs), func(r R) bool { return column(r) != c.Key[0] })}
			cells = append(cells, Cell(figure.Format, both.Values(figure.Of)))
		}
		rows = append(rows, cells)
	}
	return render(out, header, 0, rows)
}

// Ratio divides a figure by that of the base run with the same key. A run without one has no ratio.
func Ratio[R any, K comparable](runs []R, of func(R) float64, key func(R) K, isBase func(R) bool) func(R) float64 {
	base := map[K]float64{}
	for _, r := range runs {
		if isBase(r) {
			base[key(r)] = of(r)
		}
	}
	return func(r R) float64 { return of(r) / base[key(r)] }
}
