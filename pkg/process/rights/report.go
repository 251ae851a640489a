package rights

import (
	"fmt"
	"io"
	"strings"

	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/screen/tables"
)

// Report is what a preflight has found out.
type Report struct {
	// Account is whose rights were asked for.
	Account string `json:"account"`
	// Checked counts the rights that were asked for.
	Checked int    `json:"checked"`
	Missing []Need `json:"missing"`
}

// Lacks reports whether a right is missing that the configuration needs in every cluster.
func (r *Report) Lacks() bool {
	for _, m := range r.Missing {
		if m.Weight != Conditional {
			return true
		}
	}
	return false
}

// WriteTable prints a row for the missing rights to each resource.
func (r *Report) WriteTable(out io.Writer) error {
	var b strings.Builder
	if rows := r.rows(); len(rows) > 0 {
		t := tables.New(tables.ScreenOf(out), tables.Column{Name: "api group"}, tables.Column{Name: "resource"},
			tables.Column{Name: "verbs"}, tables.Column{Name: "weight"}, tables.Column{Name: "needed by", Extra: true},
			tables.Column{Name: "without it"})
		for _, row := range rows {
			t.Row(row...)
		}
		b.WriteString(t.String())
	}
	fmt.Fprintf(&b, "%s: %s checked, %d missing\n", r.Account, plural.Of(r.Checked, "right"), len(r.Missing))
	_, err := io.WriteString(out, b.String())
	return err
}

func (r *Report) rows() [][]any {
	var rows [][]any
	for _, m := range joined(r.Missing) {
		group := m.Group
		if group == "" {
			group = `""`
		}
		resource := m.Resource
		if m.Name != "" {
			resource += " " + m.Name
		}
		if m.Namespace != "" {
			resource += " in " + m.Namespace
		}
		rows = append(rows, []any{group, resource, m.Verb, m.Weight, strings.Join(m.For, ", "), m.Lost})
	}
	return rows
}

// joined joins the verbs that are missing for one reason.
func joined(missing []Need) []Need {
	var all []Need
	for _, m := range missing {
		if n := len(all); n > 0 && all[n-1].sameReason(m) {
			all[n-1].Verb += "," + m.Verb
		} else {
			all = append(all, m)
		}
	}
	return all
}

func (n Need) sameReason(other Need) bool {
	return n.Group == other.Group && n.Resource == other.Resource && n.Name == other.Name &&
		n.Namespace == other.Namespace && n.Weight == other.Weight && n.Lost == other.Lost
}

// Count is the number of different rights.
func Count(all []Need) int {
	seen := map[string]bool{}
	for _, n := range all {
		seen[n.Right()] = true
	}
	return len(seen)
}
