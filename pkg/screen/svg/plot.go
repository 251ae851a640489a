// Package svg draws plots with lines over axes as elements of a page. A style sheet sets the colors by class.
//
// The dashboard and the pages of berth compare call it. It does not know what the values mean.
package svg

import (
	_ "embed" // for the style sheet
	"fmt"
	"html"
	"math"
	"strings"
)

// The drawing area of a plot in user units. A plot is drawn small and scaled up, so that its text is legible on a
// phone.
const (
	plotWidth, plotHeight   = 400.0, 260.0
	marginLeft, marginRight = 46.0, 10.0
	marginTop, marginBottom = 12.0, 40.0
	innerWidth, innerHeight = plotWidth - marginLeft - marginRight, plotHeight - marginTop - marginBottom
)

// Series is one line of a plot, with a range of values as a band around it.
type Series struct {
	// Class by which a style sheet colors it.
	Class    string
	X, Y     []float64
	Low, Top []float64
}

// Axis is the range of values along one side of a plot.
type Axis struct {
	Label    string
	Min, Max float64
	Format   func(float64) string
}

// part is the position of a value along the axis, from 0 to 1.
func (a *Axis) part(v float64) float64 {
	return (v - a.Min) / (a.Max - a.Min)
}

// Plot draws lines over axes. Title and Description are its text alternative.
type Plot struct {
	ID, Title, Description string
	X, Y                   Axis
	Lines                  []Series
	// Diagonal draws where y equals x.
	Diagonal bool
}

func (p *Plot) px(v float64) float64 { return marginLeft + innerWidth*p.X.part(v) }

func (p *Plot) py(v float64) float64 { return marginTop + innerHeight*(1-p.Y.part(v)) }

// SVG is the plot as an element of a page.
func (p *Plot) SVG() string {
	var b strings.Builder
	fmt.Fprintf(&b,
		`<svg viewBox="0 0 %g %g" role="img" aria-labelledby="%s-t %s-d"><title id="%s-t">%s</title><desc id="%s-d">%s</desc>`,
		plotWidth, plotHeight, p.ID, p.ID, p.ID, html.EscapeString(p.Title), p.ID, html.EscapeString(p.Description))
	p.draw(&b)
	b.WriteString("</svg>")
	return b.String()
}

func (p *Plot) draw(b *strings.Builder) {
	p.gridY(b)
	for _, v := range ticks(p.X.Min, p.X.Max, 6) {
		x := p.px(v)
		fmt.Fprintf(b,
			`<line class="tickmark" x1="%.1f" y1="%g" x2="%.1f" y2="%g"/><text class="tick" x="%.1f" y="%g" text-anchor="middle">%s</text>`,
			x, marginTop+innerHeight, x, marginTop+innerHeight+4, x, marginTop+innerHeight+16, html.EscapeString(p.X.Format(v)))
	}
	p.axisX(b)
	if p.Diagonal {
		to := math.Min(p.X.Max, p.Y.Max)
		fmt.Fprintf(b, `<line class="ideal" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, p.px(0), p.py(0), p.px(to), p.py(to))
	}
	for _, s := range p.Lines {
		if s.Low != nil {
			fmt.Fprintf(b, `<path class="band %s" d="%s"/>`, s.Class, p.band(s))
		}
	}
	for _, s := range p.Lines {
		fmt.Fprintf(b, `<path class="line %s" d="%s"/>`, s.Class, p.path(s.X, s.Y))
	}
}

// gridY draws the horizontal lines of a plot with their values.
func (p *Plot) gridY(b *strings.Builder) {
	for _, v := range ticks(p.Y.Min, p.Y.Max, 5) {
		y := p.py(v)
		fmt.Fprintf(b,
			`<line class="grid" x1="%g" y1="%.1f" x2="%g" y2="%.1f"/><text class="tick" x="%g" y="%.1f" text-anchor="end">%s</text>`,
			marginLeft, y, plotWidth-marginRight, y, marginLeft-5, y+4, html.EscapeString(p.Y.Format(v)))
	}
}

// axisX draws the x axis with its label.
func (p *Plot) axisX(b *strings.Builder) {
	fmt.Fprintf(b, `<line class="axis" x1="%g" y1="%g" x2="%g" y2="%g"/>`, marginLeft, marginTop+innerHeight,
		plotWidth-marginRight, marginTop+innerHeight)
	fmt.Fprintf(b, `<text class="label" x="%g" y="%g" text-anchor="middle">%s</text>`, marginLeft+innerWidth/2,
		plotHeight-6, html.EscapeString(p.X.Label))
}

func (p *Plot) path(x, y []float64) string {
	var b strings.Builder
	command := byte('M')
	for i := range x {
		fmt.Fprintf(&b, "%c%.1f %.1f", command, p.px(x[i]), p.py(y[i]))
		command = 'L'
	}
	return b.String()
}

func (p *Plot) band(s Series) string {
	var b strings.Builder
	b.WriteString(p.path(s.X, s.Top))
	for i := len(s.X) - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "L%.1f %.1f", p.px(s.X[i]), p.py(s.Low[i]))
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
	first := math.Ceil(lo/step - 1e-9) // which may be minus zero
	for i := 0.0; (first+i)*step <= hi+step*1e-9; i++ {
		list = append(list, (first+i)*step)
	}
	return list
}

// Above is a round number not below v, for the end of an axis; 1 if v is not positive.
func Above(v float64) float64 {
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

// PageStyle is the style sheet of pages with plots: colors for light, dark and paper, text, tables and plots.
//
//go:embed page.css
var PageStyle string
