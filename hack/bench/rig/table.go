package rig

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// column is a figure of a table: a field of the runs with a tag "title|format". A further "|optional" says that 0 is
// no figure.
type column struct {
	field         int
	title, format string
	optional      bool
}

// tagged are the fields of a struct that have a tag.
func tagged(run reflect.Type, tag string) []column {
	var list []column
	for i := range run.NumField() {
		if text, ok := run.Field(i).Tag.Lookup(tag); ok {
			parts := append(strings.Split(text, "|"), "", "")
			list = append(list, column{i, parts[0], parts[1], parts[2] == "optional"})
		}
	}
	return list
}

// cell is the spread of the figure in the runs that have it.
func (c *column) cell(runs []reflect.Value) string {
	var values []float64
	for _, run := range runs {
		v := run.Field(c.field)
		if v.IsZero() && c.optional {
			continue
		}
		if v.CanInt() {
			values = append(values, float64(v.Int()))
		} else {
			values = append(values, v.Float())
		}
	}
	return cellOf(c.format, values)
}

// group are the runs of one row.
type group struct {
	key  table.Row
	runs []reflect.Value
}

// grouped puts runs together whose fields are the same, in the order in which they come first.
func grouped(runs []reflect.Value, fields []column) []group {
	var groups []group
	for _, run := range runs {
		var key table.Row
		for _, c := range fields {
			key = append(key, fmt.Sprint(run.Field(c.field)))
		}
		i := slices.IndexFunc(groups, func(g group) bool { return slices.Equal(g.key, key) })
		if i < 0 {
			i, groups = len(groups), append(groups, group{key: key})
		}
		groups[i].runs = append(groups[i].runs, run)
	}
	return groups
}

// Table prints runs, which are structs: a row for each combination of the fields with a tag row:"title", and a column
// for each field with a tag column:"title|format", the median with the least and the most in brackets.
func Table[R any](out io.Writer, runs []R) error {
	var all []reflect.Value
	for i := range runs {
		all = append(all, reflect.ValueOf(&runs[i]).Elem())
	}
	keys, columns := tagged(reflect.TypeFor[R](), "row"), tagged(reflect.TypeFor[R](), "column")
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	var header table.Row
	var configs []table.ColumnConfig
	for _, c := range keys {
		header = append(header, c.title)
	}
	for _, c := range columns {
		header = append(header, c.title)
		configs = append(configs, table.ColumnConfig{Number: len(header), Align: text.AlignRight,
			AlignHeader: text.AlignRight})
	}
	t.AppendHeader(header)
	t.SetColumnConfigs(configs)
	for _, g := range grouped(all, keys) {
		row := g.key
		for _, c := range columns {
			row = append(row, c.cell(g.runs))
		}
		t.AppendRow(row)
	}
	if _, err := fmt.Fprintln(out, t.Render()); err != nil {
		return fmt.Errorf("printing the table: %w", err)
	}
	return nil
}
