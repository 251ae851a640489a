package validate

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"berth.dev/berth/pkg/plural"
)

// WriteTable prints the findings, a line each, and the weights of the profiles as a table.
func (r *Report) WriteTable(out io.Writer) error {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintln(&b, f)
	}
	if len(r.Profiles) > 0 {
		b.WriteString(r.weights())
	}
	errors, warnings := 0, 0
	for _, f := range r.Findings {
		switch f.Severity {
		case Error:
			errors++
		case Warning:
			warnings++
		}
	}
	fmt.Fprintf(&b, "%s, %s, %s\n", plural.Of(r.Objects, "object"), plural.Of(errors, "error"), plural.Of(warnings, "warning"))
	if _, err := io.WriteString(out, b.String()); err != nil {
		return err
	}
	if r.Rights == nil {
		return nil
	}
	return r.Rights.WriteTable(out)
}

// weights has a row a profile and a column a plugin that scores in any of them.
func (r *Report) weights() string {
	var plugins []string
	seen := map[string]bool{}
	for _, p := range r.Profiles {
		for _, w := range p.Weights {
			if !seen[w.Plugin] {
				seen[w.Plugin] = true
				plugins = append(plugins, w.Plugin)
			}
		}
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.Style().Format.Header = text.FormatDefault
	header := table.Row{"weights by profile"}
	for _, p := range r.Profiles {
		header = append(header, p.Name)
	}
	t.AppendHeader(header)
	for _, plugin := range plugins {
		row := table.Row{plugin}
		for _, p := range r.Profiles {
			if w := p.weight(plugin); w > 0 {
				row = append(row, w)
			} else {
				row = append(row, "-")
			}
		}
		t.AppendRow(row)
	}
	columns := make([]table.ColumnConfig, 0, len(r.Profiles))
	for i := range r.Profiles {
		columns = append(columns, table.ColumnConfig{Number: i + 2, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	return t.Render() + "\n"
}
