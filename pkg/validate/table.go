package validate

import (
	"fmt"
	"io"
	"strings"

	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/screen/tables"
)

// WriteTable prints the findings, a line each, and the weights of the profiles as a table.
func (r *Report) WriteTable(out io.Writer) error {
	screen := tables.ScreenOf(out)
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintln(&b, f.colored(screen))
	}
	if len(r.Profiles) > 0 {
		b.WriteString(r.weights(screen))
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
	fmt.Fprintf(&b, "%s, %s, %s\n", plural.Of(r.Objects, "object"), plural.Of(errors, "error"),
		plural.Of(warnings, "warning"))
	if _, err := io.WriteString(out, b.String()); err != nil {
		return err
	}
	if r.Rights == nil {
		return nil
	}
	if err := r.Rights.WriteTable(out); err != nil {
		return err
	}
	for _, p := range r.Pruned {
		if _, err := fmt.Fprintln(out, p); err != nil {
			return err
		}
	}
	return nil
}

// weights has a row for each plugin that scores in a profile, and a column for each profile.
func (r *Report) weights(screen tables.Screen) string {
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
	columns := []tables.Column{{Name: "weights by profile"}}
	for _, p := range r.Profiles {
		columns = append(columns, tables.Column{Name: p.Name, Number: true})
	}
	t := tables.New(screen, columns...)
	for _, plugin := range plugins {
		row := []any{plugin}
		for _, p := range r.Profiles {
			if w := p.weight(plugin); w > 0 {
				row = append(row, w)
			} else {
				row = append(row, "-")
			}
		}
		t.Row(row...)
	}
	return t.String()
}
