package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/showback"
	"berth.dev/berth/pkg/tables"
)

//go:embed showback.html
var showbackSource string

var showbackTemplate = template.Must(template.New("page").Parse(showbackSource))

// Names of the lines that belong to no key.
const (
	idleLine  = "idle, on nodes in use"
	emptyLine = "empty nodes"
	totalLine = "total"
)

// WriteShowback writes a statement for a terminal.
func WriteShowback(w io.Writer, s *showback.Statement) error {
	screen := tables.ScreenOf(w)
	columns := []tables.Column{{Name: s.By}, {Name: "GPU-hours", Number: true},
		{Name: "% of GPU-hours", Number: true, Extra: true}}
	if s.Measured {
		columns = append(columns, tables.Column{Name: "used", Number: true})
	}
	dollars := showsMoney(s)
	if dollars {
		columns = append(columns, tables.Column{Name: "dollars", Number: true},
			tables.Column{Name: "% of dollars", Number: true, Extra: true})
	}
	t := tables.New(screen, columns...)
	for _, row := range showbackRows(s) {
		cells := []any{row.Key, row.GPUHours, row.GPUPercent}
		if s.Measured {
			cells = append(cells, row.Used)
		}
		if dollars {
			cells = append(cells, row.Dollars, row.DollarPercent)
		}
		t.Row(cells...)
	}
	lines := []string{screen.Wrap(showbackTitle(s)), strings.TrimSuffix(t.String(), "\n")}
	for _, note := range showbackNotes(s) {
		lines = append(lines, screen.Wrap("note: "+note))
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

func showbackTitle(s *showback.Statement) string {
	return fmt.Sprintf("%s by %s, from %s to %s (%s), by %s", s.Input, s.By, s.From.Format(time.RFC3339),
		s.To.Format(time.RFC3339),
		tables.Duration(s.To.Sub(s.From)), s.Source)
}

func showsMoney(s *showback.Statement) bool { return s.Total.MicroDollars > 0 }

// showbackNotes say what the figures leave out.
func showbackNotes(s *showback.Statement) []string {
	var notes []string
	switch s.NodesWithoutPrice {
	case 0:
	case s.Nodes:
		notes = append(notes, "no node has a price, so nothing is known of cost; --prices gives rates")
	default:
		notes = append(notes, fmt.Sprintf("%d of the %d nodes %s no price: %s GPU-hours of the total cost nothing here",
			s.NodesWithoutPrice, s.Nodes,
			plural.Choose(s.NodesWithoutPrice, "has", "have"), gpuHours(s.UnpricedMilliGPUSeconds)))
	}
	if !s.Measured {
		notes = append(notes, "use of the GPUs was not measured")
	}
	return append(notes, s.Notes...)
}

// showbackRow is a line as it is shown.
type showbackRow struct {
	Key, GPUHours, GPUPercent, Used, Dollars, DollarPercent string
	// Whole marks the line of the total.
	Whole bool
}

func showbackRows(s *showback.Statement) []showbackRow {
	rows := make([]showbackRow, 0, len(s.Lines)+3)
	add := func(key string, a showback.Amount, used *int64) {
		row := showbackRow{Key: key, GPUHours: gpuHours(a.MilliGPUSeconds),
			GPUPercent: partOf(a.MilliGPUSeconds, s.Total.MilliGPUSeconds),
			Dollars:    money(a.MicroDollars), DollarPercent: partOf(a.MicroDollars, s.Total.MicroDollars),
			Whole: key == totalLine}
		if used != nil {
			row.Used = fmt.Sprintf("%s (%s %%)", gpuHours(*used), partOf(*used, a.MilliGPUSeconds))
		}
		rows = append(rows, row)
	}
	for _, l := range s.Lines {
		add(l.Key, showback.Amount{MilliGPUSeconds: l.MilliGPUSeconds, MicroDollars: l.MicroDollars}, l.UsedMilliGPUSeconds)
	}
	if s.Idle != (showback.Amount{}) {
		add(idleLine, s.Idle, nil)
	}
	if s.Empty != (showback.Amount{}) {
		add(emptyLine, s.Empty, nil)
	}
	add(totalLine, s.Total, nil)
	return rows
}

// gpuHours writes milli-GPU·seconds as GPU-hours with two decimals.
func gpuHours(milliGPUSeconds int64) string {
	return fmt.Sprintf("%.2f", float64(milliGPUSeconds)/3_600_000)
}

// money writes dollars to the cent; the exact amounts are in JSON.
func money(micro int64) string { return fmt.Sprintf("$%.2f", dollars(micro)) }

func partOf(part, whole int64) string {
	if whole == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", 100*float64(part)/float64(whole))
}
