package svg

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// Sizes of a time line in user units.
const (
	timeWidth, timeRight    = 960.0, 940.0
	rowHeight, barHeight    = 26.0, 18.0
	shortStep, longStep     = 18.0, 30.0 // between the names of moments, without and with words below them
	timeLetter, longestName = 6.8, 24
)

// TimeLine draws what happened in rows of bars along an axis of seconds, and moments as lines across the rows. How it
// looks is left to a style sheet: rows are of the class row, spans of their own, moments of the class moment.
type TimeLine struct {
	ID, Title, Description string
	// Begin and End are what is shown; what lies beyond is drawn at the edge.
	Begin, End float64
	Rows       []TimeRow
	Moments    []Moment
	Legend     []Span
	Format     func(seconds float64) string
}

// TimeRow is what became of one thing.
type TimeRow struct {
	Name  string
	Spans []Span
}

// Span is a bar. In a legend only class and title count.
type Span struct {
	From, To     float64
	Class, Title string
}

// Moment is a line across all rows, with a name above and, if there are, words below the name.
type Moment struct {
	At          float64
	Name, Words string
}

// top is where the rows begin: below the moments, which have a line each.
func (t *TimeLine) top() float64 {
	y := 10.0
	for _, m := range t.Moments {
		y += m.step()
	}
	return y + 8
}

func (m *Moment) step() float64 {
	if m.Words == "" {
		return shortStep
	}
	return longStep
}

func (t *TimeLine) bottom() float64 { return t.top() + rowHeight*float64(len(t.Rows)) }

// Height of the drawing, which is 960 wide.
func (t *TimeLine) Height() float64 {
	if t.Legend == nil {
		return t.bottom() + 24
	}
	return t.bottom() + 48
}

// left is where the axis begins: behind the names of the rows.
func (t *TimeLine) left() float64 {
	longest := 10
	for _, r := range t.Rows {
		longest = max(longest, lettersOf(r.Name))
	}
	return 5 + timeLetter*float64(longest)
}

// lettersOf is how many letters of a row's name are shown.
func lettersOf(name string) int { return min(longestName, len([]rune(name))) }

func (t *TimeLine) x(at float64) float64 { return alongAxis(at, t.left(), t.Begin, t.End) }

// alongAxis is where a moment is on the axis that leads from left to the right edge. What is beyond is at the edge.
func alongAxis(at, left, begin, end float64) float64 {
	return left + (timeRight-left)*(min(max(at, begin), end)-begin)/max(end-begin, 1e-9)
}

// openTimeLine begins a drawing of that height, with what it is called and shows.
func openTimeLine(class string, height float64, id, title, description string) string {
	return fmt.Sprintf(
		`<svg class="%s" viewBox="0 0 %g %g" role="img" aria-labelledby="%s-t %s-d"><title id="%s-t">%s</title><desc id="%s-d">%s</desc>`,
		class, timeWidth, height, id, id, id, html.EscapeString(title), id, html.EscapeString(description))
}

// namedRow draws the name of a row, whose letters stand at base, and the ground for its bars.
func namedRow(b *strings.Builder, name string, base, left, y, height float64) {
	fmt.Fprintf(b,
		`<text class="s" x="0" y="%g">%s<title>%s</title></text><rect class="row" x="%.1f" y="%g" width="%.1f" height="%g" rx="2"/>`,
		base, html.EscapeString(tail(name, longestName)), html.EscapeString(name), left, y, timeRight-left, height)
}

// SVG is the time line as an element of a page.
func (t *TimeLine) SVG() string {
	var b strings.Builder
	b.WriteString(openTimeLine("timeline", t.Height(), t.ID, t.Title, t.Description))
	t.Draw(&b)
	b.WriteString("</svg>")
	return b.String()
}

// Draw adds the elements to a drawing of that width.
func (t *TimeLine) Draw(b *strings.Builder) {
	y := t.top()
	for _, r := range t.Rows {
		t.row(b, y, &r)
		y += rowHeight
	}
	y = 12
	for _, m := range t.Moments {
		t.moment(b, y, &m)
		y += m.step()
	}
	for _, at := range timeTicks(t.Begin, t.End) {
		fmt.Fprintf(b,
			`<path class="tickmark" d="M%.1f %gv4"/><text class="tick" x="%.0f" y="%g" text-anchor="middle">%s</text>`,
			t.x(at), t.bottom(), t.x(at), t.bottom()+16, html.EscapeString(t.Format(at)))
	}
	for i, item := range t.Legend {
		x := t.left() + 190*float64(i)
		fmt.Fprintf(b,
			`<rect class="span %s" x="%g" y="%g" width="12" height="12"/><text class="s" x="%.0f" y="%g">%s</text>`,
			item.Class, x, t.bottom()+32, x+18, t.bottom()+42, html.EscapeString(item.Title))
	}
}

func (t *TimeLine) row(b *strings.Builder, y float64, r *TimeRow) {
	namedRow(b, r.Name, y+13, t.left(), y, barHeight)
	for _, s := range r.Spans {
		fmt.Fprintf(b, `<rect class="span %s" x="%.1f" y="%g" width="%.1f" height="%g" rx="2"><title>%s</title></rect>`,
			s.Class, t.x(s.From), y, max(1, t.x(s.To)-t.x(s.From)), barHeight, html.EscapeString(s.Title))
	}
}

func (t *TimeLine) moment(b *strings.Builder, y float64, m *Moment) {
	x := t.x(m.At)
	fmt.Fprintf(b, `<path class="moment" d="M%.1f %gV%g"/>`, x, y+4, t.bottom())
	anchor, indent := "start", 6.0
	if x > (t.left()+timeRight)/2 {
		anchor, indent = "end", -6
	}
	fmt.Fprintf(b, `<text class="b" x="%.0f" y="%g" text-anchor="%s">%s, %s</text>`, x, y, anchor,
		html.EscapeString(m.Name), html.EscapeString(t.Format(m.At)))
	if m.Words != "" {
		fmt.Fprintf(b, `<text class="s" x="%.0f" y="%g" text-anchor="%s">%s</text>`, x+indent, y+15, anchor,
			html.EscapeString(m.Words))
	}
}

// timeTicks are round times within a range, in seconds.
func timeTicks(lo, hi float64) []float64 {
	const most = 10
	if hi-lo <= most/2 {
		return ticks(max(lo, 0), hi, most/2)
	}
	step := 86400.0
	for (hi-lo)/step > most {
		step *= 2
	}
	for _, s := range []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200} {
		if (hi-lo)/s <= most {
			step = s
			break
		}
	}
	var list []float64
	first := math.Ceil(lo / step) // which may be minus zero
	for i := 0.0; (first+i)*step <= hi; i++ {
		list = append(list, (first+i)*step)
	}
	return list
}
