package svg

import (
	"fmt"
	"html"
	"slices"
	"strings"
)

// Sizes of a Gantt chart in user units.
const (
	laneHeight, ganttBar = 20.0, 15.0
	rowGap, ganttTop     = 7.0, 24.0
	legendItem           = 150.0
	jag                  = 5.0 // of the edge of a bar that breaks off
	fewestLetters        = 3   // of a label that is cut off
)

// Gantt draws what has which part of a row from when to when, along an axis of seconds on which 0 is now. Bars that
// overlap have lanes of their own. How it looks is left to a style sheet: rows are of the class row, bars of their own.
type Gantt struct {
	ID, Title, Description string
	// Begin and End are what is shown, with now between them.
	Begin, End float64
	Rows       []GanttRow
	// Legend has a class and a title of each kind of bar.
	Legend []Span
	Format func(seconds float64) string
}

// GanttRow is a place, or something that has none yet.
type GanttRow struct {
	Name string
	Bars []Bar
}

// Bar is a span with a label. Low and High are where its uncertain end may be, and equal where that is certain. An open
// bar has no known end: it is drawn to the edge, where it breaks off.
type Bar struct {
	Span
	Label     string
	Low, High float64
	Open      bool
}

// from and to are what the bar takes of its lane.
func (g *Gantt) from(b *Bar) float64 {
	if b.Low < b.High {
		return min(b.From, b.Low)
	}
	return b.From
}

func (g *Gantt) to(b *Bar) float64 {
	switch {
	case b.Open:
		return g.End
	case b.Low < b.High:
		return max(b.To, b.High)
	}
	return b.To
}

// lanes gives each bar of a row a lane: the first one that is free, in the order in which the bars begin.
func (g *Gantt) lanes(bars []Bar) (lane []int, number int) {
	order := make([]int, len(bars))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch from, other := g.from(&bars[i]), g.from(&bars[j]); {
		case from < other:
			return -1
		case from > other:
			return 1
		}
		return 0
	})
	lane = make([]int, len(bars))
	var ends []float64
	for _, i := range order {
		at := slices.IndexFunc(ends, func(end float64) bool { return end <= g.from(&bars[i]) })
		if at < 0 {
			at, ends = len(ends), append(ends, 0)
		}
		lane[i], ends[at] = at, g.to(&bars[i])
	}
	return lane, max(1, len(ends))
}

func (g *Gantt) left() float64 {
	longest := 6
	for _, r := range g.Rows {
		longest = max(longest, lettersOf(r.Name))
	}
	return 12 + timeLetter*float64(longest)
}

func (g *Gantt) x(at float64) float64 { return alongAxis(at, g.left(), g.Begin, g.End) }

// SVG is the chart as an element of a page, 960 wide.
func (g *Gantt) SVG() string {
	var rows strings.Builder
	y := ganttTop
	for i := range g.Rows {
		y = g.row(&rows, y, &g.Rows[i])
	}
	var b strings.Builder
	b.WriteString(openTimeLine("timeline gantt", y+42, g.ID, g.Title, g.Description))
	for _, at := range timeTicks(g.Begin, g.End) {
		x := g.x(at)
		fmt.Fprintf(&b,
			`<path class="grid" d="M%.1f %gV%g"/><text class="tick" x="%.1f" y="%g" text-anchor="middle">%s</text>`,
			x, ganttTop-4, y, x, ganttTop-10, html.EscapeString(g.Format(at)))
	}
	b.WriteString(rows.String())
	fmt.Fprintf(&b, `<path class="now" d="M%.1f %gV%g"/>`, g.x(0), ganttTop-6, y)
	for i, item := range g.Legend {
		x := g.left() + legendItem*float64(i)
		fmt.Fprintf(&b, `<rect class="span %s" x="%g" y="%g" width="18" height="12" rx="2"/><text class="s" x="%g" y="%g">%s</text>`,
			item.Class, x, y+14, x+24, y+24, html.EscapeString(item.Title))
	}
	b.WriteString("</svg>")
	return b.String()
}

// row draws a row, and returns where the next one begins.
func (g *Gantt) row(b *strings.Builder, y float64, r *GanttRow) (next float64) {
	lanes, number := g.lanes(r.Bars)
	height := laneHeight * float64(number)
	namedRow(b, r.Name, y+14, g.left(), y, height)
	for i := range r.Bars {
		bar, next := &r.Bars[i], g.End
		for j := range r.Bars {
			if from := g.from(&r.Bars[j]); lanes[j] == lanes[i] && from >= g.to(bar) {
				next = min(next, from)
			}
		}
		g.bar(b, y+laneHeight*float64(lanes[i])+1, bar, next)
	}
	return y + height + rowGap
}

// bar draws a bar whose lane is free behind it until next.
func (g *Gantt) bar(b *strings.Builder, y float64, bar *Bar, next float64) {
	if bar.From > g.End || g.to(bar) < g.Begin {
		return
	}
	from, to := g.x(bar.From), g.x(bar.To)
	fmt.Fprintf(b, `<g><title>%s</title>`, html.EscapeString(bar.Title))
	if bar.Open || bar.To > g.End {
		to = timeRight // where it breaks off
		fmt.Fprintf(b, `<path class="span %s" d="M%.1f %gH%.1fl-%g %gl%g %gl-%g %gl%g %gH%.1fZ"/>`, bar.Class, from, y, to,
			jag, ganttBar/4, jag, ganttBar/4, jag, ganttBar/4, jag, ganttBar/4, from)
	} else {
		fmt.Fprintf(b, `<rect class="span %s" x="%.1f" y="%g" width="%.1f" height="%g" rx="2"/>`, bar.Class, from, y,
			max(1, to-from), ganttBar)
	}
	if bar.Low < bar.High && bar.Low < g.End {
		low, high := g.x(bar.Low), g.x(bar.High)
		fmt.Fprintf(b, `<path class="may" d="M%.1f %gv4m0 -2H%.1fm0 -2v4"/>`, low, y+ganttBar, high)
	}
	whole := len([]rune(bar.Label))
	room := func(from, to float64) int { return int((to - from - 8) / timeLetter) }
	at, letters := from, room(from, to)
	if behind := g.x(g.to(bar)); letters < whole && room(behind, g.x(next)) > letters {
		at, letters = behind, room(behind, g.x(next))
	}
	if letters >= fewestLetters {
		fmt.Fprintf(b, `<text class="s" x="%.1f" y="%g">%s</text>`, at+4, y+11.5, html.EscapeString(head(bar.Label, letters)))
	}
	b.WriteString("</g>")
}

// head is the beginning of a text that has no more than that many letters.
func head(text string, letters int) string {
	if runes := []rune(text); len(runes) > letters {
		return string(runes[:letters-1]) + "…"
	}
	return text
}

// tail is the end of a name: names of nodes and pods differ there.
func tail(name string, letters int) string {
	if runes := []rune(name); len(runes) > letters {
		return "…" + string(runes[len(runes)-letters+1:])
	}
	return name
}
