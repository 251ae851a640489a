package dashboard

import (
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"time"

	"berth.dev/berth/pkg/overview"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/svg"
	"berth.dev/berth/pkg/tables"
)

// mostDrawn is how many members the time line shows; the table has all.
const mostDrawn = 32

// gangView is the page of a gang.
type gangView struct {
	Cluster, Title, State, Groups string
	Explain                       template.URL
	// Line draws the moments, and what became of the first members; NotDrawn is how many it leaves out.
	Line     template.HTML
	NotDrawn int
	Moments  []moment
	Members  []row
}

// moment is when something became of a gang: how long ago, and how long after the gang was created.
type moment struct{ Ago, After, Name, Words string }

// gang shows what became of a gang and of its members.
func (s *Server) gang(w http.ResponseWriter, r *http.Request) {
	namespace, name := r.URL.Query().Get("namespace"), r.URL.Query().Get("name")
	history, c := s.source.History(namespace, name), visible(s.cluster(), readerOf(r))
	at := slices.IndexFunc(c.Gangs, func(g overview.Gang) bool { return g.Namespace == namespace && g.Name == name })
	if history == nil || at < 0 {
		s.problem(w, http.StatusNotFound, fmt.Sprintf("There is no gang %s/%s that has not ended.", namespace, name),
			"It may have ended since the page was made.")
		return
	}
	g := &c.Gangs[at]
	view := gangView{
		Cluster: s.source.Name, Title: namespace + "/" + name, Explain: explainLink("podgroup", namespace, name),
		State: fmt.Sprintf("%d of %d members that start together have a node; %d exist, %d run on %s, and ask for %s GPUs.",
			g.Scheduled, g.MinMember, g.Members, g.Running, plural.Of(g.Nodes, "node"), overview.GPUs(g.MilliGPU)),
		Groups:  g.Groups,
		Moments: moments(history, g, c.Taken), NotDrawn: max(0, len(history.Members)-mostDrawn),
	}
	if len(history.Moments) > 0 {
		view.Line = template.HTML(timeLine(history, c.Taken)) //nolint:gosec // its texts are escaped
	}
	for i := range history.Members {
		view.Members = append(view.Members, memberRow(namespace, &history.Members[i], c.Taken))
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	s.write(w, "gang", view)
}

// moments are those of the history, and what the gang lacks now.
func moments(h *overview.History, g *overview.Gang, now time.Time) []moment {
	var list []moment
	for _, m := range h.Moments {
		list = append(list, moment{ago(m.At, now) + " ago", ago(h.Moments[0].At, m.At), m.Name, m.Words})
	}
	for _, words := range []string{g.Reason, g.Reserved, g.Late} {
		if words != "" && !slices.ContainsFunc(h.Moments, func(m overview.Moment) bool { return m.Words == words }) {
			list = append(list, moment{Ago: "now", Name: "last words", Words: words})
		}
	}
	return list
}

// timeLine draws from a while before the first moment until now, or until a while after all members have ended.
func timeLine(h *overview.History, now time.Time) string {
	begin, end := h.Moments[0].At, now
	if last := lastEnd(h.Members); !last.IsZero() {
		end = last
	}
	since := func(at time.Time) float64 { return at.Sub(begin).Seconds() }
	margin := max(1, since(end)) / 40
	line := svg.TimeLine{
		ID: "history", Title: "Time line of the gang",
		Description: "What became of its members, and when; the table below has the same in words.",
		Begin:       -margin, End: since(end) + margin, Format: tables.Seconds,
		Legend: []svg.Span{{Class: "waits", Title: "waits for a node"}, {Class: "bound", Title: "bound to a node"},
			{Class: "runs", Title: "runs"}},
	}
	for i, m := range h.Moments {
		// The API keeps whole seconds, in which much may happen.
		if i > 0 && m.At.Equal(h.Moments[i-1].At) {
			line.Moments[len(line.Moments)-1].Name += ", " + m.Name
			continue
		}
		line.Moments = append(line.Moments, svg.Moment{At: since(m.At), Name: m.Name})
	}
	for i := range h.Members[:min(len(h.Members), mostDrawn)] {
		m := &h.Members[i]
		row := svg.TimeRow{Name: m.Name}
		// A member is in one state until the next one whose time is known.
		from, class, title := m.Created, "waits", m.Name+" waits"
		next := func(at time.Time, after, words string) {
			if !at.IsZero() {
				row.Spans = append(row.Spans, svg.Span{From: since(from), To: since(at), Class: class, Title: title})
				from, class, title = at, after, words
			}
		}
		next(m.Bound, "bound", m.Name+" is bound to "+m.Node)
		next(m.Ready, "runs", m.Name+" runs on "+m.Node)
		next(m.Ended, "", "")
		if m.Ended.IsZero() {
			next(end, "", "")
		}
		line.Rows = append(line.Rows, row)
	}
	return line.SVG()
}

// lastEnd is when the last member ended, the zero time while there are others.
func lastEnd(members []overview.Member) time.Time {
	var last time.Time
	for i := range members {
		if members[i].Ended.IsZero() {
			return time.Time{}
		}
		if members[i].Ended.After(last) {
			last = members[i].Ended
		}
	}
	return last
}

func memberRow(namespace string, m *overview.Member, now time.Time) row {
	bound := ""
	if !m.Bound.IsZero() {
		bound = ago(m.Bound, now)
	}
	return row{Link: explainLink("pod", namespace, m.Name), Cells: []string{
		m.Name, m.Rank, overview.GPUs(m.MilliGPU), ago(m.Created, now), bound, m.Node, m.Phase, m.Reason,
	}}
}

// ago is the time between two moments, never negative: the clocks of machines differ.
func ago(at, now time.Time) string { return tables.Duration(max(0, now.Sub(at)).Truncate(time.Second)) }
