package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"

	"berth.dev/berth/pkg/replay"
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
	Legend  bool
	Uses    bool
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
	Findings     []string
	// Figures by row: the plots, and the two maps side by side.
	Figures       [][]figure
	Placements    string
	PlacementsKey string
}

// WriteHTML writes the comparison as one page that needs no other file and no network.
func WriteHTML(w io.Writer, c *Comparison) error {
	first := c.A.Results[0]
	p := page{
		Comparison: c, NameA: sideName(c.A), NameB: sideName(c.B), Mode: modeWords(c.Mode), Seeds: seedList(c.Seeds), SeedCount: len(c.Seeds),
		Nodes: first.Nodes, Pods: first.Pods, GPUs: number(gpus(first.CapacityMilli)), PlacementsKey: placementsKey,
	}
	for _, r := range c.Rows {
		if r.Key == placementsKey {
			p.Placements = spread(r.B, r.Unit, len(c.Seeds))
		}
	}
	p.Findings = findings(c)
	plots := []figure{allocationFigure(c), strandedFigure(c)}
	if c.priced() {
		plots = append(plots, costFigure(c))
	}
	if c.Mode == replay.VirtualTime {
		plots = append(plots, waitFigure(c))
	}
	p.Figures = [][]figure{plots, {mapFigure(c.A, "A", "map-a"), mapFigure(c.B, "B", "map-b")}}
	return pageTemplate.Execute(w, p)
}

func seedList(seeds []uint64) string {
	if len(seeds) == 1 {
		return fmt.Sprintf("seed %d", seeds[0])
	}
	return fmt.Sprintf("seeds %d to %d", seeds[0], seeds[len(seeds)-1])
}

// findings are the sentences at the head of the page: what changes for sure.
func findings(c *Comparison) []string {
	var list []string
	for _, r := range c.Rows {
		word := verdict(r)
		if (word != " better" && word != " worse") || r.Percent == nil || r.Measured || math.Abs(*r.Percent) < 0.05 {
			continue
		}
		list = append(list, fmt.Sprintf("%s: %s with A, %s with B (%+.1f%%,%s).",
			r.Label, quantity(r.A.Mean, r.Unit), quantity(r.B.Mean, r.Unit), *r.Percent, word))
		if len(list) == 5 {
			break
		}
	}
	if len(list) == 0 {
		list = append(list, "No metric changes in the same direction on every seed.")
	}
	return list
}
