package svg

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Bars draws two groups of bars side by side, of the classes "a" and "b".
type Bars struct {
	ID, Title, Description string
	Labels                 []string
	A, B                   []float64
	AxisLabel              string
	Format                 func(float64) string
}

// SVG is the plot as an element of a page.
func (p *Bars) SVG() string {
	var b strings.Builder
	open(&b, p.ID, p.Title, p.Description, plotHeight)
	highest := 0.0
	for i := range p.A {
		highest = max(highest, p.A[i], p.B[i])
	}
	y := Axis{Max: Above(highest), Format: p.Format}
	gridY(&b, &y)
	group := innerWidth / float64(len(p.Labels))
	for i, label := range p.Labels {
		left := marginLeft + group*float64(i)
		for side, v := range []float64{p.A[i], p.B[i]} {
			height := innerHeight * y.part(v)
			fmt.Fprintf(&b, `<rect class="bar %c" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`,
				'a'+side, left+group*(0.1+0.4*float64(side)), marginTop+innerHeight-height, group*0.38, math.Max(0, height))
		}
		fmt.Fprintf(&b, `<text class="tick" x="%.1f" y="%g" text-anchor="middle">%s</text>`, left+group/2, marginTop+
			innerHeight+16, html.EscapeString(label))
	}
	axisX(&b, p.AxisLabel)
	b.WriteString("</svg>")
	return b.String()
}
