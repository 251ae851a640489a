package starttime

import (
	"slices"
	"time"
)

const (
	// settle is how much sooner the gang has to start elsewhere, at the least, before its nodes are exchanged.
	settle = time.Minute
	// lessons is how many errors of told starts are kept, and from how many on they count.
	lessons, fewLessons = 64, 12
)

// Board plans the starts of waiting gangs and remembers what it told. It is not safe for concurrent use.
type Board struct {
	settings Settings
	gangs    map[string]*memory
	// errors are by how much told starts were wrong: the time that was waited as a multiple of what was told.
	errors []float64
}

// memory is what is known of a waiting gang.
type memory struct {
	nodes map[string]bool
	told  Told
	// first is when the gang was told a start for the first time, and what.
	first     time.Time
	firstTold Told
	until     time.Time
	slips     int
}

// NewBoard returns a board without gangs.
func NewBoard(s Settings) *Board { return &Board{settings: s, gangs: map[string]*memory{}} }

// Plan returns where and when the gangs are to start, which are all that wait and come in the order of the queue. A
// gang has no reservation if it would not fit when all pods have gone that end.
func (b *Board) Plan(nodes []Node, gangs []Gang, now time.Time) []Reservation {
	p := newPlanner(nodes, b.settings.Ready)
	waiting := make(map[string]*memory, len(gangs))
	var out []Reservation
	held := 0
	for i := range gangs {
		g := &gangs[i]
		c, ok := b.places(p, g)
		if !ok {
			continue
		}
		start := p.start(&c)
		p.take(g, &c, &start)
		r := Reservation{Gang: g.Name, Places: c.places, At: now, Start: start, Held: held < b.settings.Held,
			waited: g.Waited}
		m := b.gangs[g.Name]
		if m == nil {
			m = &memory{}
		}
		waiting[g.Name] = m
		b.tell(m, g, &r)
		if m.nodes = nil; r.Held {
			held++
			m.nodes = make(map[string]bool, len(c.places))
			for _, place := range c.places {
				m.nodes[nodes[place.Node].Name] = true
			}
		}
		out = append(out, r)
	}
	b.gangs = waiting
	return out
}

// places returns the places that were kept before, unless the gang starts much sooner on others.
func (b *Board) places(p *planner, g *Gang) (choice, bool) {
	for i, m := range g.Members {
		if !slices.ContainsFunc(g.Members[:i], func(o Members) bool { return o.Shape == m.Shape }) {
			p.shape(m.Shape)
		}
	}
	best, ok := p.choose(g, func(int) bool { return true })
	m := b.gangs[g.Name]
	if !ok || m == nil || m.nodes == nil {
		return best, ok
	}
	kept, same := p.choose(g, func(n int) bool { return m.nodes[p.nodes[n].Name] })
	if same && float64(kept.at) <= b.settings.Exchange*float64(best.at)+float64(settle) {
		return kept, true
	}
	return best, true
}

// tell decides what start to tell, and how much it binds.
func (b *Board) tell(m *memory, g *Gang, r *Reservation) {
	likely := r.Start.At(0.5)
	next := Told{r.At.Add(r.Start.At(0.1)), r.At.Add(likely), r.At.Add(r.Start.At(0.9))}
	if len(b.errors) >= fewLessons {
		sorted := slices.Sorted(slices.Values(b.errors))
		next.Earliest = r.At.Add(scaled(likely, sorted[len(sorted)/10]))
		next.Latest = r.At.Add(scaled(likely, sorted[len(sorted)-1-len(sorted)/10]))
	}
	switch {
	case m.first.IsZero():
		m.first, m.firstTold, m.told = r.At, next, next
		m.until = next.Likely
		if g.Run.Ends() {
			m.until = next.Likely.Add(time.Duration(b.settings.Slack * float64(min(g.Run.At(0.5), longest))))
		}
	case next.Likely.After(m.told.Latest) || r.At.After(m.told.Latest):
		m.told, r.Slipped = next, true
		if m.slips++; m.slips == b.settings.Slips {
			m.until = next.Likely
		}
	case next.Likely.Before(m.told.Earliest) || 2*next.Latest.Sub(next.Earliest)+
		2*time.Minute < m.told.Latest.Sub(m.told.Earliest):
		m.told = next
	}
	r.Told, r.Firm, r.Until = m.told, m.slips >= b.settings.Slips, m.until
}

// longest bounds run times where they are multiplied.
const longest = 30 * 24 * time.Hour

// scaled is the time times the error, for which both are a minute longer.
func scaled(left time.Duration, times float64) time.Duration {
	return max(time.Duration(float64(min(left, 12*longest)+time.Minute)*times)-time.Minute, 0)
}

// Started notes that a gang has started, to learn from the error of the start that was told. It returns what was told
// first, false if nothing was.
func (b *Board) Started(gang string, now time.Time) (first Told, told bool) {
	m := b.gangs[gang]
	if m == nil {
		return Told{}, false
	}
	if len(b.errors) == lessons {
		b.errors = slices.Delete(b.errors, 0, 1)
	}
	b.errors = append(b.errors, float64(now.Sub(m.first)+time.Minute)/float64(m.firstTold.Likely.Sub(m.first)+time.Minute))
	delete(b.gangs, gang)
	return m.firstTold, true
}
