package main

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// Measures of the plot in user units: panels under one another, one a workload, and a legend to the right of each.
const (
	plotWidth, panelHeight  = 760.0, 300.0
	marginLeft, marginRight = 64.0, 190.0
	marginTop, marginBottom = 40.0, 52.0
	innerWidth, innerHeight = plotWidth - marginLeft - marginRight, panelHeight - marginTop - marginBottom
)

// colors are told apart by readers who confuse red and green, too. Contenders beyond their number get dashed lines.
var colors = []string{"#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}

const plotStyle = `text{font:12px sans-serif;fill:#222}.title{font-size:14px;font-weight:bold}` +
	`.grid{stroke:#ddd}.axis{stroke:#444}.line{fill:none;stroke-width:2}.spread{stroke-width:1.2}`

// panel is the plot of one workload.
type panel struct {
	workload     string
	nodes        []int
	lowX, highX  float64
	highY, stepY float64
}

// growthPlot draws the CPU time per pod over the number of nodes: medians, with bars from the least to the most.
func growthPlot(runs []run) string {
	var panels []panel
	for i := range runs {
		if !slices.ContainsFunc(panels, func(p panel) bool { return p.workload == runs[i].Workload }) {
			panels = append(panels, newPanel(runs, runs[i].Workload))
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" role="img" aria-labelledby="title">`+
		`<title id="title">CPU time of the scheduler per pod by number of nodes</title><style>%s</style>`+
		`<rect width="100%%" height="100%%" fill="#fff"/>`, plotWidth, panelHeight*float64(len(panels)), plotStyle)
	for i := range panels {
		fmt.Fprintf(&b, `<g transform="translate(0 %g)">`, panelHeight*float64(i))
		panels[i].grid(&b)
		panels[i].lines(&b, runs)
		b.WriteString("</g>")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func newPanel(runs []run, workload string) panel {
	p := panel{workload: workload}
	most := 0.0
	for i := range runs {
		if r := &runs[i]; r.Workload == workload {
			most = max(most, r.CPUMillisPerPod)
			if !slices.Contains(p.nodes, r.Nodes) {
				p.nodes = append(p.nodes, r.Nodes)
			}
		}
	}
	slices.Sort(p.nodes)
	// A little beyond the measured sizes, so that no point lies on the axis and a single size is in the middle.
	p.lowX, p.highX = float64(p.nodes[0])/1.15, float64(p.nodes[len(p.nodes)-1])*1.15
	p.stepY = roundStep(most / 5)
	p.highY = p.stepY * max(math.Ceil(most/p.stepY), 1)
	return p
}

// roundStep is the least of 1, 2 and 5 times a power of ten that is not below v; 1 for nothing.
func roundStep(v float64) float64 {
	if v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if v <= m*power {
			return m * power
		}
	}
	return 10 * power
}

// x is logarithmic: clusters grow by factors.
func (p *panel) x(nodes int) float64 {
	return marginLeft + innerWidth*math.Log(float64(nodes)/p.lowX)/math.Log(p.highX/p.lowX)
}

func (p *panel) y(millis float64) float64 { return marginTop + innerHeight*(1-millis/p.highY) }

func (p *panel) grid(b *strings.Builder) {
	const right, bottom = marginLeft + innerWidth, marginTop + innerHeight
	fmt.Fprintf(b, `<text class="title" x="%g" y="%g">Workload: %s</text>`,
		marginLeft, marginTop-16, html.EscapeString(p.workload))
	for v := 0.0; v <= p.highY+p.stepY/2; v += p.stepY {
		fmt.Fprintf(b, `<line class="grid" x1="%g" y1="%.1f" x2="%g" y2="%.1f"/>`, marginLeft, p.y(v), right, p.y(v))
		fmt.Fprintf(b, `<text x="%g" y="%.1f" text-anchor="end">%.4g</text>`, marginLeft-8, p.y(v)+4, v)
	}
	for _, n := range p.nodes {
		fmt.Fprintf(b, `<line class="axis" x1="%.1f" y1="%g" x2="%.1f" y2="%g"/>`, p.x(n), bottom, p.x(n), bottom+5)
		fmt.Fprintf(b, `<text x="%.1f" y="%g" text-anchor="middle">%s</text>`, p.x(n), bottom+19, thousands(n))
	}
	fmt.Fprintf(b, `<path class="axis" fill="none" d="M%g %gV%gH%g"/>`, marginLeft, marginTop, bottom, right)
	fmt.Fprintf(b, `<text x="%g" y="%g" text-anchor="middle">nodes (logarithmic scale)</text>`,
		marginLeft+innerWidth/2, bottom+40)
	fmt.Fprintf(b, `<text transform="translate(16 %g) rotate(-90)" text-anchor="middle">scheduler CPU, ms per pod</text>`,
		marginTop+innerHeight/2)
}

// lines draws the contenders, and the legend in the order of their last points, which is that of the lines' ends.
func (p *panel) lines(b *strings.Builder, runs []run) {
	type entry struct {
		name, stroke string
		last         float64
	}
	var legend []entry
	for i, contender := range contendersOf(runs) {
		stroke := fmt.Sprintf(`stroke="%s"`, colors[i%len(colors)])
		if i >= len(colors) {
			stroke += ` stroke-dasharray="6 4"`
		}
		var path strings.Builder
		command, last := 'M', 0.0
		for _, n := range p.nodes {
			list := values(runs, group{n, p.workload}, contender, cpuMillisPerPod)
			if len(list) == 0 {
				continue
			}
			s := spreadOf(list)
			fmt.Fprintf(&path, "%c%.1f %.1f", command, p.x(n), p.y(s.median))
			fmt.Fprintf(b, `<line class="spread" %s x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`,
				stroke, p.x(n), p.y(s.least), p.x(n), p.y(s.most))
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s">`, p.x(n), p.y(s.median), colors[i%len(colors)])
			fmt.Fprintf(b, `<title>%s, %s nodes: %.2f ms per pod (%.2f to %.2f)</title></circle>`,
				html.EscapeString(contender), thousands(n), s.median, s.least, s.most)
			command, last = 'L', s.median
		}
		if path.Len() == 0 {
			continue
		}
		fmt.Fprintf(b, `<path class="line" %s d="%s"/>`, stroke, path.String())
		legend = append(legend, entry{contender, stroke, last})
	}
	slices.SortStableFunc(legend, func(a, b entry) int { return cmp.Compare(b.last, a.last) })
	for i, e := range legend {
		x, y := marginLeft+innerWidth+14, marginTop+8+20*float64(i)
		fmt.Fprintf(b, `<line class="line" %s x1="%g" y1="%g" x2="%g" y2="%g"/><text x="%g" y="%g">%s</text>`,
			e.stroke, x, y, x+26, y, x+32, y+4, html.EscapeString(e.name))
	}
}

// thousands writes a number with commas between groups of three digits.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
