package svg

import (
	"fmt"
	"html"
	"strings"
)

const (
	legendWidth, captionHeight = 130.0, 22.0
	legendLine                 = 16.0
)

// colors are told apart by readers who confuse red and green, too. Lines beyond their number are dashed.
var colors = []string{"#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"}

// Color is that of line number i, in hexadecimal; the colors repeat.
func Color(i int) string { return colors[i%len(colors)] }

// LineClass is the class of line number i in a document.
func LineClass(i int) string {
	class := fmt.Sprint("c", i%len(colors))
	if i >= len(colors) {
		class += " dashed"
	}
	return class
}

// documentStyle is the style sheet of a document.
func documentStyle() string {
	var b strings.Builder
	b.WriteString(
		`svg{background:#fff}text{font:12px sans-serif;fill:#222}.caption{font-weight:bold}.grid{stroke:#ddd}.axis,.tickmark{stroke:#444}` +
			`.line{fill:none;stroke-width:2}.dashed{stroke-dasharray:6 4}.band{stroke:none;opacity:.18}`)
	for i, c := range colors {
		fmt.Fprintf(&b, `.line.c%d{stroke:%s}.band.c%d,.point.c%d{fill:%s}`, i, c, i, i, c)
	}
	return b.String()
}

// Document draws plots under one another, each with its title above, a legend to the right and a mark at each value, as
// a file that shows without a page around it.
func Document(title string, plots []Plot) string {
	const height = plotHeight + captionHeight
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" role="img" aria-labelledby="title">`+
		`<title id="title">%s</title><style>%s</style><rect width="100%%" height="100%%" fill="#fff"/>`,
		Width+legendWidth, height*float64(len(plots)), html.EscapeString(title), documentStyle())
	for i := range plots {
		p := &plots[i]
		fmt.Fprintf(&b,
			`<g transform="translate(0 %g)"><text class="caption" x="%g" y="16">%s</text><g transform="translate(0 %g)">`,
			height*float64(i), marginLeft, html.EscapeString(p.Title), captionHeight)
		p.draw(&b)
		for n, s := range p.Lines {
			p.points(&b, s)
			x, y := Width+4, marginTop+legendLine*float64(n)
			fmt.Fprintf(&b, `<path class="line %s" d="M%g %gh20"/><text x="%g" y="%g">%s</text>`,
				s.Class, x, y, x+26, y+4, html.EscapeString(s.Name))
		}
		b.WriteString("</g></g>")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// points marks the values of a line, and says of each what it is when pointed at.
func (p *Plot) points(b *strings.Builder, s Series) {
	for i := range s.X {
		fmt.Fprintf(b, `<circle class="point %s" cx="%.1f" cy="%.1f" r="3"><title>%s, %s: %s`, s.Class, p.px(s.X[i]),
			p.py(s.Y[i]),
			html.EscapeString(s.Name), html.EscapeString(p.X.Format(s.X[i])), html.EscapeString(p.Y.Format(s.Y[i])))
		if s.Low != nil {
			fmt.Fprintf(b, ` (%s to %s)`, html.EscapeString(p.Y.Format(s.Low[i])), html.EscapeString(p.Y.Format(s.Top[i])))
		}
		b.WriteString("</title></circle>")
	}
}
