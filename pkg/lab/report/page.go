package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"berth.dev/berth/pkg/screen/svg"
)

//go:embed page.html
var pageSource string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"percent":  percent,
	"number":   number,
	"verdict":  verdict,
	"labelled": labelled,
	"valueIn":  valueIn,
}).Parse(pageSource))

// figure is one plot with the same data as a table.
type figure struct {
	Title   string
	Caption string
	SVG     template.HTML
	Head    []string
	Table   [][]string
}

type page struct {
	*Comparison
	NameA, NameB string
	Mode         string
	Seeds        string
	SeedCount    int
	Nodes, Pods  int
	GPUs         string
	Verdict      []string
	Shown        []Row
	Hidden       string
	Figures      []figure
	Placements   string
	Style        template.CSS
}

// WriteHTML writes the comparison as one page that needs no other file and no network.
func WriteHTML(w io.Writer, c *Comparison) error {
	first := c.A.Results[0]
	p := page{
		Comparison: c, NameA: sideName(c.A), NameB: sideName(c.B), Mode: modeWords(c.Mode), Seeds: seedList(c.Seeds),
		SeedCount: len(c.Seeds),
		Nodes:     first.Nodes, Pods: first.Pods, GPUs: number(gpus(first.CapacityMilli)), Style: template.CSS(svg.PageStyle),
	}
	for _, r := range c.Rows {
		if r.Key == placementsKey {
			p.Placements = spread(r.B, r.Unit, len(c.Seeds))
		}
	}
	p.Verdict, p.Shown, p.Hidden = c.Verdict.lines(len(c.Seeds)), c.shown(), c.hidden()
	p.Figures = courseFigures(c)
	return pageTemplate.Execute(w, p)
}

func seedList(seeds []uint64) string {
	if len(seeds) == 1 {
		return fmt.Sprintf("seed %d", seeds[0])
	}
	return fmt.Sprintf("seeds %d to %d", seeds[0], seeds[len(seeds)-1])
}
