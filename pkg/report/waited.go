package report

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"slices"

	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/replay/replayed"
	"berth.dev/berth/pkg/svg"
	"berth.dev/berth/pkg/tables"
)

const (
	// leastWait is how long the gang has waited whose nodes are drawn, in seconds.
	leastWait = 60
	// mostDrawn is how many of its nodes are, mostBars how many stays on each: the longest of them.
	mostDrawn, mostBars = 12, 60
)

// waitedGang is the gang that has waited for the longest time with one of the configurations, and started with both.
type waitedGang struct {
	name    string
	arrived float64
	// starts are when it started, in seconds after the start of the replay, with A and with B.
	starts [2]float64
	// begin and end are what is drawn of both.
	begin, end float64
}

// longestWait finds the gang; there is none if none has waited for a minute.
func longestWait(a, b *replayed.Result) (w waitedGang, found bool) {
	longest := 0.0
	for i := range a.Stays {
		s := &a.Stays[i]
		inA, startedA := a.Starts[s.Job]
		inB, startedB := b.Starts[s.Job]
		if wait := max(inA, inB) - s.Arrived; s.Gang && startedA && startedB && wait >= max(leastWait, longest) &&
			(wait > longest || s.Job < w.name) {
			longest, found = wait, true
			w = waitedGang{name: s.Job, arrived: s.Arrived, starts: [2]float64{inA, inB}}
		}
	}
	w.begin, w.end = w.arrived-longest/8, w.arrived+longest*5/4
	return w, found
}

// waitedFigures draw, for both configurations, what ran on the nodes of the gang that has waited for the longest time.
func waitedFigures(c *Comparison) []figure {
	results := [2]*replayed.Result{c.A.Results[0], c.B.Results[0]}
	if c.Mode != replayed.VirtualTime {
		return nil
	}
	w, found := longestWait(results[0], results[1])
	if !found {
		return nil
	}
	var figures []figure
	for i, r := range results {
		figures = append(figures, w.figure([]string{"A", "B"}[i], i, r))
	}
	return figures
}

func (w *waitedGang) figure(side string, at int, r *replayed.Result) figure {
	start := w.starts[at]
	nodes, more := w.nodes(r, start)
	chart := svg.Gantt{
		ID: "waited-" + side, Title: "What ran on the nodes of a gang while it waited, with " + side,
		Description: fmt.Sprintf("A row for each node that gang %s got, from its arrival until it had started; "+
			"the table has the same.", w.name),
		Begin: w.begin - w.arrived, End: w.end - w.arrived, Format: sinceArrival,
		Legend: []svg.Span{{Class: "running", Title: "before and after"}, {Class: "backfilled", Title: "started meanwhile"},
			{Class: "reserved", Title: "the gang"}},
	}
	f := figure{
		Title: fmt.Sprintf("%s: the nodes of gang %s, which waited %s", side, w.name, tables.Seconds(start-w.arrived)),
		Caption: "The gang that waited for the longest time with A or B: what ran where it started. Times are since " +
			"it came." + more,
		Head: []string{"Node", "Job", "From", "Until"},
	}
	for _, node := range nodes {
		row := svg.GanttRow{Name: node}
		for _, s := range w.stays(r, node) {
			from, to := s.From-w.arrived, s.To-w.arrived
			class := "running"
			switch {
			case s.Job == w.name:
				class = "reserved"
			case s.From > w.arrived && s.From < start:
				class = "backfilled"
			}
			words := fmt.Sprintf("%s, from %s to %s", s.Job, sinceArrival(from), sinceArrival(to))
			row.Bars = append(row.Bars, svg.Bar{Span: svg.Span{Class: class, Title: words, From: from, To: to}, Label: s.Job})
			f.Table = append(f.Table, []string{node, s.Job, sinceArrival(from), sinceArrival(to)})
		}
		chart.Rows = append(chart.Rows, row)
	}
	f.SVG = template.HTML(chart.SVG()) //nolint:gosec // its texts are escaped
	return f
}

// nodes are those on which the gang started, and words for those that are left out.
func (w *waitedGang) nodes(r *replayed.Result, start float64) (names []string, more string) {
	got := map[string]bool{}
	for i := range r.Stays {
		if s := &r.Stays[i]; s.Job == w.name && s.From <= start {
			got[s.Node] = true
		}
	}
	names = slices.Sorted(maps.Keys(got))
	if left := len(names) - mostDrawn; left > 0 {
		names, more = names[:mostDrawn], fmt.Sprintf(" %s are left out.", plural.Of(left, "node"))
	}
	return names, more
}

// stays are the longest ones of the node that are drawn, in the order of their beginnings.
func (w *waitedGang) stays(r *replayed.Result, node string) []replayed.Stay {
	var list []replayed.Stay
	for _, s := range r.Stays {
		if s.Node == node && s.To > w.begin && s.From < w.end {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(x, y replayed.Stay) int { return -cmp.Compare(x.To-x.From, y.To-y.From) })
	list = list[:min(len(list), mostBars)]
	slices.SortStableFunc(list, func(x, y replayed.Stay) int { return cmp.Compare(x.From, y.From) })
	return list
}

func sinceArrival(seconds float64) string {
	if seconds < 0 {
		return tables.Seconds(-seconds) + " before"
	}
	return tables.Seconds(seconds)
}
