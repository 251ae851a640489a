package report

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// The drawing area of a plot in user units. A plot is drawn small and scaled up, so that its letters are still legible at
// the width of a phone.
const (
	plotWidth, plotHeight   = 400.0, 260.0
	marginLeft, marginRight = 46.0, 10.0
	marginTop, marginBottom = 12.0, 40.0
	innerWidth, innerHeight = plotWidth - marginLeft - marginRight, plotHeight - marginTop - marginBottom
)

// series is one line of a plot, with the range over the seeds as a band around it.
type series struct {
	class    string // "a" or "b", which the page's style colours
	x, y     []float64
	low, top []float64
}

// axis is the range of values along one side of a plot.
type axis struct {
	label    string
	min, max float64
	format   func(float64) string
}

// plot draws lines over axes; title and description are its text alternative.
type plot struct {
	id, title, description string
	x, y                   axis
	lines                  []series
	// diagonal draws where y equals x.
	diagonal bool
}

func (p *plot) px(v float64) float64 {
	return marginLeft + innerWidth*(v-p.x.min)/(p.x.max-p.x.min)
}

func (p *plot) py(v float64) float64 {
	return marginTop + innerHeight*(1-(v-p.y.min)/(p.y.max-p.y.min))
}

func (p *plot) svg() string {
	var b strings.Builder
	openSVG(&b, p.id, p.title, p.description, plotHeight)
	p.grid(&b)
	if p.diagonal {
		to := math.Min(p.x.max, p.y.max)
		fmt.Fprintf(&b, `<line class="ideal" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, p.px(0), p.py(0), p.px(to), p.py(to))
	}
	for _, s := range p.lines {
		if s.low != nil {
			fmt.Fprintf(&b, `<path class="band %s" d="%s"/>`, s.class, p.band(s))
		}
	}
	for _, s := range p.lines {
		fmt.Fprintf(&b, `<path class="line %s" d="%s"/>`, s.class, p.path(s.x, s.y))
	}
	b.WriteString("</svg>")
	return b.String()
}

func openSVG(b *strings.Builder, id, title, description string, height float64) {
	fmt.Fprintf(b, `<svg viewBox="0 0 %g %g" role="img" aria-labelledby="%s-t %s-d"><title id="%s-t">%s</title><desc id="%s-d">%s</desc>`,
		plotWidth, height, id, id, id, html.EscapeString(title), id, html.EscapeString(description))
}

func (p *plot) grid(b *strings.Builder) {
	for _, v := range ticks(p.y.min, p.y.max, 5) {
		y := p.py(v)
		fmt.Fprintf(b, `<line class="grid" x1="%g" y1="%.1f" x2="%g" y2="%.1f"/><text class="tick" x="%g" y="%.1f" text-anchor="end">%s</text>`,
			marginLeft, y, plotWidth-marginRight, y, marginLeft-5, y+4, html.EscapeString(p.y.format(v)))
	}
	for _, v := range ticks(p.x.min, p.x.max, 6) {
		x := p.px(v)
		fmt.Fprintf(b, `<line class="tickmark" x1="%.1f" y1="%g" x2="%.1f" y2="%g"/><text class="tick" x="%.1f" y="%g" text-anchor="middle">%s</text>`,
			x, marginTop+innerHeight, x, marginTop+innerHeight+4, x, marginTop+innerHeight+16, html.EscapeString(p.x.format(v)))
	}
	fmt.Fprintf(b, `<line class="axis" x1="%g" y1="%g" x2="%g" y2="%g"/>`, marginLeft, marginTop+innerHeight, plotWidth-marginRight, marginTop+innerHeight)
	fmt.Fprintf(b, `<text class="label" x="%g" y="%g" text-anchor="middle">%s</text>`, marginLeft+innerWidth/2, plotHeight-6, html.EscapeString(p.x.label))
}

func (p *plot) path(x, y []float64) string {
	var b strings.Builder
	command := byte('M')
	for i := range x {
		fmt.Fprintf(&b, "%c%.1f %.1f", command, p.px(x[i]), p.py(y[i]))
		command = 'L'
	}
	return b.String()
}

func (p *plot) band(s series) string {
	var b strings.Builder
	b.WriteString(p.path(s.x, s.top))
	for i := len(s.x) - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "L%.1f %.1f", p.px(s.x[i]), p.py(s.low[i]))
	}
	b.WriteByte('Z')
	return b.String()
}

// ticks are about n round numbers within a range.
func ticks(lo, hi float64, n int) []float64 {
	if !(hi > lo) || math.IsInf(hi-lo, 0) {
		return []float64{lo}
	}
	step := math.Pow(10, math.Floor(math.Log10((hi-lo)/float64(n))))
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		if (hi-lo)/(step*m) <= float64(n) {
			step *= m
			break
		}
	}
	var list []float64
	for i := math.Ceil(lo/step - 1e-9); i*step <= hi+step*1e-9; i++ {
		list = append(list, i*step)
	}
	return list
}

// above is a round number not below v, for the end of an axis; 1 for nothing.
func above(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return 1
	}
	t := ticks(0, v, 5)
	step := 1.0
	if len(t) > 1 {
		step = t[1] - t[0]
	}
	return math.Ceil(v/step-1e-9) * step
}

// bars draws two groups of bars side by side.
type bars struct {
	id, title, description string
	labels                 []string
	a, b                   []float64
	axisLabel              string
}

func (p *bars) svg() string {
	var b strings.Builder
	openSVG(&b, p.id, p.title, p.description, plotHeight)
	highest := 0.0
	for i := range p.a {
		highest = math.Max(highest, math.Max(p.a[i], p.b[i]))
	}
	frame := plot{x: axis{min: 0, max: 1, format: func(float64) string { return "" }}, y: axis{min: 0, max: above(highest), format: number}}
	for _, v := range ticks(0, frame.y.max, 5) {
		fmt.Fprintf(&b, `<line class="grid" x1="%g" y1="%.1f" x2="%g" y2="%.1f"/><text class="tick" x="%g" y="%.1f" text-anchor="end">%s</text>`,
			marginLeft, frame.py(v), plotWidth-marginRight, frame.py(v), marginLeft-5, frame.py(v)+4, number(v))
	}
	group := innerWidth / float64(len(p.labels))
	for i, label := range p.labels {
		left := marginLeft + group*float64(i)
		for side, v := range []float64{p.a[i], p.b[i]} {
			class := "a"
			if side == 1 {
				class = "b"
			}
			y := frame.py(v)
			fmt.Fprintf(&b, `<rect class="bar %s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`,
				class, left+group*(0.1+0.4*float64(side)), y, group*0.38, math.Max(0, marginTop+innerHeight-y))
		}
		fmt.Fprintf(&b, `<text class="tick" x="%.1f" y="%g" text-anchor="middle">%s</text>`, left+group/2, marginTop+innerHeight+16, html.EscapeString(label))
	}
	fmt.Fprintf(&b, `<line class="axis" x1="%g" y1="%g" x2="%g" y2="%g"/>`, marginLeft, marginTop+innerHeight, plotWidth-marginRight, marginTop+innerHeight)
	fmt.Fprintf(&b, `<text class="label" x="%g" y="%g" text-anchor="middle">%s</text></svg>`, marginLeft+innerWidth/2, plotHeight-6, html.EscapeString(p.axisLabel))
	return b.String()
}
