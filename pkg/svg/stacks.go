package svg

import (
	"fmt"
	"html"
	"strings"
)

// Stacks draws bars side by side, each of parts on top of one another.
type Stacks struct {
	ID, Title, Description string
	// Labels are those of the bars; an empty one is left out.
	Labels    []string
	Parts     []Part
	AxisLabel string
	Format    func(float64) string
}

// Part is one part of each bar, of a class of its own.
type Part struct {
	Class, Name string
	Values      []float64
}

// SVG is the plot as an element of a page.
func (p *Stacks) SVG() string {
	var b strings.Builder
	Open(&b, p.ID, p.Title, p.Description, plotHeight)
	highest := 0.0
	for i := range p.Labels {
		sum := 0.0
		for _, part := range p.Parts {
			sum += part.Values[i]
		}
		highest = max(highest, sum)
	}
	y := Axis{Max: Above(highest), Format: p.Format}
	gridY(&b, &y)
	place := innerWidth / float64(max(1, len(p.Labels)))
	for i, label := range p.Labels {
		left, sum := marginLeft+place*float64(i), 0.0
		for _, part := range p.Parts {
			height := innerHeight * y.part(part.Values[i])
			sum += height
			if height > 0 {
				fmt.Fprintf(&b, `<rect class="stack %s" x="%.1f" y="%.2f" width="%.1f" height="%.2f"><title>%s: %s</title></rect>`,
					part.Class, left+place*0.04, marginTop+innerHeight-sum, place*0.92, height, html.EscapeString(part.Name),
					html.EscapeString(p.Format(part.Values[i])))
			}
		}
		if label != "" {
			fmt.Fprintf(&b, `<text class="tick" x="%.1f" y="%g" text-anchor="middle">%s</text>`, left+place/2, marginTop+
				innerHeight+16, html.EscapeString(label))
		}
	}
	axisX(&b, p.AxisLabel)
	b.WriteString("</svg>")
	return b.String()
}
