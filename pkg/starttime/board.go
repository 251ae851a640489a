package starttime

import (
	"slices"
	"time"
)

const (
	// settle is how much sooner the gang has to start elsewhere, at the least, before its nodes are exchanged.
	settle = time.Minute
	// lessons is how many errors of told starts are kept, and from how many on the assumed ones count no more.
	lessons, enoughLessons = 64, 32
)

// assumed are errors of told starts that count until enough are known: what the traces have, a little wider.
var assumed = [...]float64{0.05, 0.5, 0.9, 1, 1, 1.1, 1.5, 3}

// Board plans the starts of waiting gangs and remembers what it told. It is not safe for concurrent use.
type Board struct {
	settings Settings
	gangs    map[string]*memory
	// errors are by how much told starts were wrong: the time that was waited as a multiple of what was told. Those of
	// gangs for which nodes were kept come second: of the others, gangs before them decide.
	errors [2][]float64
}

// memory is what is known of a waiting gang.
type memory struct {
	nodes map[string]bool
	told  Told
	// first is when the gang was told a start for the first time, and what.
	first     time.Time
	firstTold Told
	firstHeld int
	// until and slips are of the time since nodes are held for it: until then, its start moves with those of the gangs
	// before it, which says nothing of pods that enter.
	until time.Time
	slips int
	held  bool
	// due is the start that has slipped if it is not kept: that of the forecast, as what is told is wide.
	due time.Time
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
	choose := func(may func(node int) bool) (choice, bool) { return p.choose(g, may) }
	if g.Tree != nil {
		choose = p.bySet(g).choose
	} else {
		for i, m := range g.Members {
			if !slices.ContainsFunc(g.Members[:i], func(o Members) bool { return o.Shape == m.Shape }) {
				p.shape(m.Shape)
			}
		}
	}
	best, ok := choose(func(int) bool { return true })
	m := b.gangs[g.Name]
	if !ok || m == nil || m.nodes == nil {
		return best, ok
	}
	kept, same := choose(func(n int) bool { return m.nodes[p.nodes[n].Name] })
	if same && float64(kept.at) <= b.settings.Exchange*float64(best.at)+float64(settle) {
		return kept, true
	}
	return best, true
}

// tell decides what start to tell, and how much it binds.
func (b *Board) tell(m *memory, g *Gang, r *Reservation) {
	likely := r.Start.At(0.5)
	held := 0
	if r.Held {
		held = 1
	}
	low, high := between(b.errors[held])
	next := Told{r.At.Add(scaled(likely, low)), r.At.Add(likely), r.At.Add(scaled(likely, high))}
	least := leastWidth(likely)
	next.widen(least)
	due := r.At.Add(max(r.Start.At(0.75), likely+least))
	if r.Held && !m.held {
		m.held, m.until = true, next.Likely
		if g.Run.Ends() {
			m.until = next.Likely.Add(time.Duration(b.settings.Slack * float64(min(g.Run.At(0.5), longest))))
		}
		m.due = due
	}
	// What pods that enter may put it off is no slip.
	if late := next.Likely.After(m.due) || r.At.After(m.due); m.held && late && next.Likely.After(m.until) {
		m.due = due
		if m.slips++; m.slips == b.settings.Slips {
			m.until = next.Likely
		}
	}
	switch {
	case m.first.IsZero():
		m.first, m.firstTold, m.firstHeld, m.told = r.At, next, held, next
	case next.Likely.After(m.told.Latest) || r.At.After(m.told.Latest):
		m.told, r.Slipped = next, true
	case next.Likely.Before(m.told.Earliest) || 2*next.Latest.Sub(next.Earliest)+
		2*time.Minute < m.told.Latest.Sub(m.told.Earliest):
		m.told = next
	}
	r.Told, r.Firm, r.Until = m.told, m.slips >= b.settings.Slips, m.until
}

// between returns the errors between which four in five are. What the forecast says of its uncertainty is not asked: it
// knows neither which pods will enter nor which gangs come before.
func between(errors []float64) (low, high float64) {
	if len(errors) < enoughLessons {
		errors = slices.Concat(errors, assumed[:])
	}
	sorted := slices.Sorted(slices.Values(errors))
	outside := max((len(sorted)+1)/10-1, 0)
	return sorted[outside], sorted[len(sorted)-1-outside]
}

// leastWidth is the least distance of an interval's ends from its middle: no forecast knows how long a pod takes to
// begin and to go, and when the scheduler looks again.
func leastWidth(left time.Duration) time.Duration { return 30*time.Second + left/50 }

func (t *Told) widen(least time.Duration) {
	if sooner := t.Likely.Add(-least); t.Earliest.After(sooner) {
		t.Earliest = sooner
	}
	if later := t.Likely.Add(least); t.Latest.Before(later) {
		t.Latest = later
	}
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
	errors := &b.errors[m.firstHeld]
	if len(*errors) == lessons {
		*errors = slices.Delete(*errors, 0, 1)
	}
	*errors = append(*errors, float64(now.Sub(m.first)+time.Minute)/float64(m.firstTold.Likely.Sub(m.first)+time.Minute))
	delete(b.gangs, gang)
	return m.firstTold, true
}
