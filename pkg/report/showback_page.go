package report

import (
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"

	"berth.dev/berth/pkg/showback"
	"berth.dev/berth/pkg/svg"
	"berth.dev/berth/pkg/tables"
)

// colored is how many keys have a color of their own in a plot; the others share one.
const coloredKeys = 6

type showbackPage struct {
	*showback.Statement
	Title   string
	Lasting string
	Money   bool
	Rows    []showbackRow
	Said    []string
	Legend  []svg.Part
	Figures []figure
	Style   template.CSS
}

// WriteShowbackHTML writes a statement as one page that needs no other file and no network.
func WriteShowbackHTML(w io.Writer, s *showback.Statement) error {
	p := showbackPage{Statement: s, Title: showbackTitle(s), Lasting: tables.Duration(s.To.Sub(s.From)),
		Money: showsMoney(s), Rows: showbackRows(s), Said: showbackNotes(s),
		Style: template.CSS(svg.PageStyle)}
	gpuTime := func(a showback.Amount) float64 { return float64(a.MilliGPUSeconds) / 3_600_000 }
	f, legend := dayFigure(s, "gpu", "GPU-hours a day", gpuTime)
	p.Figures, p.Legend = []figure{f}, legend
	if p.Money {
		f, _ := dayFigure(s, "money", "Dollars a day", func(a showback.Amount) float64 { return dollars(a.MicroDollars) })
		p.Figures = append(p.Figures, f)
	}
	return showbackTemplate.Execute(w, p)
}

// dayFigure plots one value of the days, in parts: the largest keys, the others, what is idle and what is empty.
func dayFigure(s *showback.Statement, id, title string, of func(showback.Amount) float64) (figure, []svg.Part) {
	days := len(s.Days)
	var parts []svg.Part
	index := map[string]int{}
	part := func(class, name string) int {
		parts = append(parts, svg.Part{Class: class, Name: name, Values: make([]float64, days)})
		return len(parts) - 1
	}
	for i, l := range s.Lines {
		if i < coloredKeys || len(s.Lines) == coloredKeys+1 {
			index[l.Key] = part("s"+strconv.Itoa(i), l.Key)
		}
	}
	others := -1
	if n := len(s.Lines) - len(index); n > 0 {
		others = part("s"+strconv.Itoa(coloredKeys), fmt.Sprintf("%d others", n))
	}
	idle, empty := part("idle", idleLine), part("empty", emptyLine)
	p := svg.Stacks{ID: id, Title: title, AxisLabel: "day, UTC", Format: number}
	for i, d := range s.Days {
		for _, l := range d.Lines {
			at, known := index[l.Key]
			if !known {
				at = others
			}
			parts[at].Values[i] += of(showback.Amount{MilliGPUSeconds: l.MilliGPUSeconds, MicroDollars: l.MicroDollars})
		}
		parts[idle].Values[i], parts[empty].Values[i] = of(d.Idle), of(d.Empty)
		label := ""
		if every := (days + 5) / 6; i%every == 0 {
			label = d.From.Format("2 Jan")
		}
		p.Labels = append(p.Labels, label)
	}
	parts = slices.DeleteFunc(parts, func(p svg.Part) bool {
		return (p.Class == "idle" || p.Class == "empty") && !slices.ContainsFunc(p.Values, positive)
	})
	p.Parts = parts
	f := figure{Title: title, Head: []string{"day"}}
	for _, part := range parts {
		f.Head = append(f.Head, part.Name)
	}
	for i, d := range s.Days {
		row := []string{d.From.Format("2006-01-02")}
		for _, part := range parts {
			row = append(row, number(round3(part.Values[i])))
		}
		f.Table = append(f.Table, row)
	}
	busiest, most := 0, -1.0
	for i, d := range s.Days {
		if v := of(d.Total) - of(d.Idle) - of(d.Empty); v > most {
			busiest, most = i, v
		}
	}
	p.Description = fmt.Sprintf("Pods had most on %s: %s of %s.", s.Days[busiest].From.Format("2 January 2006"),
		number(round3(most)), number(round3(of(s.Days[busiest].Total))))
	f.Caption = p.Description
	f.SVG = template.HTML(p.SVG()) //nolint:gosec // every text in it is escaped where it is written
	return f, parts
}

func positive(v float64) bool { return v > 0 }
