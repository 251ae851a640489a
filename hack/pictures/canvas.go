package main

import (
	"fmt"
	"html"
	"strings"

	"berth.dev/berth/pkg/svg"
)

// The colors have the meaning that they have in all pictures.
const (
	ink, faint, paper = "#263238", "#78909c", "#ffffff"
	ownFill, ownLine  = "#e3f2fd", "#0072b2"
	restFill          = "#eceff1"
)

// timeLineStyle colors the parts of a time line.
const timeLineStyle = `.tick{font-size:11px}.row,.span{stroke:#fff}.row{fill:` + restFill + `}.busy{fill:#b0bec5}.kept{fill:url(#kept)}` +
	`.own{fill:` + ownLine + `}.tickmark{stroke:` + faint + `}.moment{stroke:` + ink + `;stroke-dasharray:3 3}`

// Sizes in pixels.
const lineHeight, padding = 16.0, 10.0

// canvas collects the elements of a picture.
type canvas struct {
	width, height float64
	// style is what a picture adds to the style sheet.
	style string
	body  strings.Builder
}

// document is the picture as a file.
func (c *canvas) document(title string) string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="-8 -8 %g %g" role="img" aria-labelledby="title">`+
		`<title id="title">%s</title><style>text{font:12px sans-serif;fill:%s}`+
		`.b{font-weight:bold}.f{fill:%s}.s{font-size:11px}%s</style>`+
		`<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" `+
		`markerWidth="8" markerHeight="8" orient="auto-start-reverse">`+
		`<path d="M0 0L8 4L0 8z" fill="%s"/></marker>`+
		`<pattern id="kept" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">`+
		`<rect width="6" height="6" fill="%s"/><rect width="2" height="6" fill="%s"/></pattern></defs>`+
		`<rect x="-8" y="-8" width="100%%" height="100%%" fill="%s"/>%s</svg>`+"\n",
		c.width+16, c.height+16, html.EscapeString(title), ink, faint, c.style, faint, ownFill, svg.Color(1), paper, c.body.String())
}

func (c *canvas) text(x, y float64, class, anchor, words string) {
	fmt.Fprintf(&c.body, `<text x="%.0f" y="%g" class="%s" text-anchor="%s">%s</text>`,
		x, y, class, anchor, html.EscapeString(words))
}

// box is a part with a bold title and lines below it.
type box struct {
	x, y, width, height float64
	title               string
	lines               []string
	// own is one of Berth's parts, optional one that need not be there.
	own, optional bool
}

func (c *canvas) box(b box) {
	fill, line, dash := restFill, faint, ""
	if b.own {
		fill, line = ownFill, ownLine
	}
	if b.optional {
		dash = ` stroke-dasharray="5 3"`
	}
	fmt.Fprintf(&c.body, `<rect x="%g" y="%g" width="%g" height="%g" rx="6" fill="%s" stroke="%s"%s/>`,
		b.x, b.y, b.width, b.height, fill, line, dash)
	y := b.y + padding + 11
	if b.title != "" {
		c.text(b.x+padding, y, "b", "start", b.title)
		y += lineHeight + 2
	}
	for _, words := range b.lines {
		c.text(b.x+padding, y, "s", "start", words)
		y += lineHeight
	}
}

// arrow leads from one point to another.
func (c *canvas) arrow(from, to [2]float64) {
	fmt.Fprintf(&c.body, `<path d="M%g %gL%g %g" stroke="%s" stroke-width="1.5" marker-end="url(#tip)"/>`,
		from[0], from[1], to[0], to[1], faint)
}
