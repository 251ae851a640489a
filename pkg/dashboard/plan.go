package dashboard

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"berth.dev/berth/pkg/overview"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/runtimes"
	"berth.dev/berth/pkg/svg"
	"berth.dev/berth/pkg/tables"
)

const (
	// mostPlanned is how many rows the plan has: nodes, or else racks.
	mostPlanned = 32
	// planSteps is how many steps the plan moves on in until it shows another time.
	planSteps = 500
)

// spans are for how long the plan looks ahead; the first that shows what is told is the default.
var spans = []time.Duration{
	2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	24 * time.Hour, 48 * time.Hour, 96 * time.Hour, 7 * 24 * time.Hour, 14 * 24 * time.Hour, 28 * 24 * time.Hour,
}

// planView is what runs until when and starts when, as a drawing and as a table.
type planView struct {
	// Span is for how long it looks ahead, empty for as long as is needed.
	Span string
	// Line draws it, Table says the same.
	Line  template.HTML
	Table rows
	// More says how many nodes or racks are left out, and Unread why what was learned is not known.
	More, Unread string
}

// placed is a row of the plan.
type placed struct {
	name  string
	stays []overview.Stay
	more  int
}

// planOf is the plan for some nodes, which are in the order of the map.
func (s *Server) planOf(v *view, c *overview.Cluster, nodes []overview.Node, span string, r *reader) planView {
	names, lists, more := planned(nodes)
	plan := s.source.Plan(lists, c.Taken)
	p := planView{More: more, Unread: plan.Unread}
	var all []placed
	for i, name := range names {
		all = append(all, placed{name, plan.Rows[i].Stays, plan.Rows[i].More})
	}
	for _, w := range plan.Waiting {
		if r.sees(w.Namespace) && (v.Filter == "" || matches(v.Filter, w.Namespace+"/"+w.Workload)) {
			all = append(all, placed{name: w.Workload, stays: []overview.Stay{w}})
		}
	}
	for i := range all {
		for j := range all[i].stays {
			hide(&all[i].stays[j], r)
		}
	}
	ahead := aheadOf(all, c.Taken)
	if chosen, err := time.ParseDuration(span); err == nil && slices.Contains(spans, chosen) {
		p.Span, ahead = span, chosen
	}
	if len(all) > 0 {
		p.Line = template.HTML(drawPlan(all, ahead, c.Taken)) //nolint:gosec // its texts are escaped
	}
	p.Table = planTable(all, c.Taken)
	return p
}

// planned are the rows of the plan: nodes while they are few, else what stands together on the map.
func planned(nodes []overview.Node) (names []string, lists [][]string, more string) {
	one, many := "node", "nodes"
	if len(nodes) <= mostPlanned {
		for i := range nodes {
			names, lists = append(names, nodes[i].Name), append(lists, []string{nodes[i].Name})
		}
	} else {
		one, many = "group of nodes", "groups of nodes"
		for _, g := range overview.Groups(nodes) {
			var list []string
			for i := range g.Nodes {
				list = append(list, g.Nodes[i].Name)
			}
			names, lists = append(names, withoutMaker(g.Title)), append(lists, list)
		}
	}
	if rest := len(names) - mostPlanned; rest > 0 {
		names, lists = names[:mostPlanned], lists[:mostPlanned]
		more = fmt.Sprintf("%d more %s", rest, plural.Choose(rest, one, many))
	}
	return names, lists, more
}

// hide hides whose stay it is from readers who may not see that.
func hide(s *overview.Stay, r *reader) {
	if !r.sees(s.Namespace) {
		s.Namespace, s.Workload = "", otherNamespaces
	}
}

// aheadOf is for how long to look ahead to see the starts that are told, and else half of the ends that are known.
func aheadOf(all []placed, now time.Time) time.Duration {
	var starts, ends time.Duration
	var known []time.Duration
	for i := range all {
		for j := range all[i].stays {
			stay := &all[i].stays[j]
			if stay.Kind == overview.StayReserved && !stay.From.IsZero() {
				starts = max(starts, stay.Latest.Sub(now)+stay.Latest.Sub(now)/2)
			} else if stay.Ends() {
				known = append(known, stay.To.Sub(now))
			}
		}
	}
	if slices.Sort(known); len(known) > 0 {
		ends = known[len(known)/2] * 3 / 2
	}
	wanted := cmp.Or(starts, ends, time.Hour)
	for _, span := range spans {
		if span >= wanted {
			return span
		}
	}
	return spans[len(spans)-1]
}

// planLegend are the kinds of bars.
var planLegend = []svg.Span{
	{Class: string(overview.StayRunning), Title: "running"},
	{Class: string(overview.StayBackfilled), Title: "backfilled"},
	{Class: string(overview.StayReserved), Title: "reserved"},
}

// drawPlan draws the rows from a quarter of the time before now.
func drawPlan(all []placed, ahead time.Duration, now time.Time) string {
	step := max(time.Second, (ahead / planSteps).Truncate(time.Second))
	now = now.Truncate(step)
	since := func(t time.Time) float64 { return t.Truncate(time.Second).Sub(now).Seconds() }
	chart := svg.Gantt{
		ID: "plan", Title: "What runs until when, and what starts when",
		Description: fmt.Sprintf("A row for each node or rack, from %s ago until in %s; the table below says the same.",
			tables.Duration(ahead/4), tables.Duration(ahead)),
		Begin: -(ahead / 4).Seconds(), End: ahead.Seconds(), Legend: planLegend, Format: fromNow,
	}
	for i := range all {
		row := svg.GanttRow{Name: all[i].name}
		for j := range all[i].stays {
			row.Bars = append(row.Bars, barOf(&all[i].stays[j], since, now))
		}
		chart.Rows = append(chart.Rows, row)
	}
	return chart.SVG()
}

// fromNow says a time on the axis.
func fromNow(seconds float64) string {
	switch {
	case seconds < 0:
		return tables.Seconds(-seconds) + " ago"
	case seconds > 0:
		return "in " + tables.Seconds(seconds)
	}
	return "now"
}

func barOf(s *overview.Stay, since func(time.Time) float64, now time.Time) svg.Bar {
	bar := svg.Bar{Span: svg.Span{Class: string(s.Kind), Title: inWords(s, now)}, Label: s.Workload, Open: !s.Ends()}
	switch {
	case s.Pods > 1:
		bar.Label += fmt.Sprintf(" ×%d", s.Pods)
	case s.Nodes > 1:
		bar.Label += " on " + plural.Of(s.Nodes, "node")
	}
	if !s.From.IsZero() {
		bar.From = since(s.From)
	}
	switch {
	case bar.Open && s.Basis == runtimes.Endless:
		bar.Label += ", no end of its own"
	case bar.Open:
		bar.Label += ", end unknown"
	default:
		bar.To = since(s.To)
	}
	switch {
	case s.Kind == overview.StayReserved && !s.From.IsZero():
		bar.Low, bar.High = since(s.Earliest), since(s.Latest)
	case s.Kind == overview.StayReserved:
		bar.Label = s.Workload + ", start unknown"
	case s.Ends():
		bar.Low, bar.High = bar.To, since(s.By)
	}
	return bar
}

// inWords says what a bar shows.
func inWords(s *overview.Stay, now time.Time) string {
	name := s.Workload
	if s.Namespace != "" {
		name = s.Namespace + "/" + s.Workload
	}
	words := []string{fmt.Sprintf("%s: %s", name, s.Kind)}
	if s.Pods > 0 {
		words[0] += fmt.Sprintf(", %s with %s GPUs", plural.Of(s.Pods, "pod"), overview.GPUs(s.MilliGPU))
	}
	if s.Nodes > 1 {
		words[0] += " on " + plural.Of(s.Nodes, "node")
	}
	return strings.Join(append(words, startWords(s, now), endWords(s, now)+basisWords(s)), "; ")
}

func startWords(s *overview.Stay, now time.Time) string {
	switch {
	case s.From.IsZero():
		return "start not known"
	case s.Kind == overview.StayReserved:
		return fmt.Sprintf("expected to start at %s, between %s and %s", clock(s.From, now), clock(s.Earliest, now),
			clock(s.Latest, now))
	}
	return "since " + clock(s.From, now)
}

func endWords(s *overview.Stay, now time.Time) string {
	switch {
	case s.Ends() && s.Kind != overview.StayReserved && !s.To.After(now):
		return "its end is due"
	case s.Ends() && s.By.After(s.To):
		return fmt.Sprintf("to end at %s, nine times in ten by %s", clock(s.To, now), clock(s.By, now))
	case s.Ends():
		return "to end at " + clock(s.To, now)
	case s.Basis == runtimes.Endless:
		return "does not end on its own"
	}
	return "end not known"
}

// basisWords say what an end rests on.
func basisWords(s *overview.Stay) string {
	switch s.Basis {
	case runtimes.Declared:
		return ", by what it declares"
	case runtimes.Limited:
		return ", by its limit"
	case runtimes.FromItsRuns:
		return ", by its earlier runs"
	case runtimes.FromOthers:
		return ", by runs of other pods"
	default:
		return ""
	}
}

// clock is the time of the day, with the date unless it is today.
func clock(t, now time.Time) string {
	t, now = t.UTC(), now.UTC()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05 UTC")
	}
	return t.Format("Jan 2 15:04 UTC")
}

// planTable has a row for each bar.
func planTable(all []placed, now time.Time) rows {
	type line struct {
		where string
		stay  *overview.Stay
		more  int
	}
	var lines []line
	for i := range all {
		for j := range all[i].stays {
			lines = append(lines, line{where: all[i].name, stay: &all[i].stays[j]})
		}
		if all[i].more > 0 {
			lines = append(lines, line{where: all[i].name, more: all[i].more})
		}
	}
	return rowsOf(lines, "", func(l *line) row {
		if l.stay == nil {
			return row{Cells: []string{l.where, "", "", "", "", "and " + plural.Of(l.more, "smaller workload")}}
		}
		gpus := "" // of what is reserved, it is not known on which nodes
		if l.stay.Pods > 0 {
			gpus = overview.GPUs(l.stay.MilliGPU)
		}
		return row{Cells: []string{l.where, l.stay.Workload, string(l.stay.Kind), gpus,
			startWords(l.stay, now), endWords(l.stay, now) + basisWords(l.stay)}}
	})
}
