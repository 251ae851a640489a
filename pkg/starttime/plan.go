package starttime

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"berth.dev/berth/pkg/runtimes"
)

// planner finds places for one gang after the other.
type planner struct {
	nodes []Node
	ready float64
	// taken is what the gangs before take of each node.
	taken []taken
	// entries and used are scratch space.
	entries [][]entry
	used    []float64
	ends    []runtimes.Forecast
}

// taken is the part of a node that is taken, and until when.
type taken struct {
	share float64
	until runtimes.Forecast
}

// entry is room for members of a shape on a node from a time on.
type entry struct {
	node, gone, count int32
	// after is set if the gangs before have to end, too.
	after bool
	at    time.Duration
}

// choice is a set of places. at is when the last of them is ready.
type choice struct {
	places []Place
	after  []bool
	at     time.Duration
}

func newPlanner(nodes []Node, ready float64) *planner {
	return &planner{nodes: nodes, ready: ready, taken: make([]taken, len(nodes)), used: make([]float64, len(nodes))}
}

// shape makes the entries of a shape: those of each domain follow each other, the soonest first. Of equal ones, those
// come first on which the fewest pods have to end.
func (p *planner) shape(shape int) {
	for len(p.entries) <= shape {
		p.entries = append(p.entries, nil)
	}
	all := p.entries[shape]
	if known := all != nil; known {
		// Only nodes with something taken have changed since.
		all = slices.DeleteFunc(all, func(e entry) bool { return p.taken[e.node].share > 0 })
		for n := range p.nodes {
			if p.taken[n].share > 0 {
				all = p.room(all, n, shape)
			}
		}
	} else {
		all = make([]entry, 0, len(p.nodes))
		for n := range p.nodes {
			all = p.room(all, n, shape)
		}
	}
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(p.nodes[a.node].domain(shape), p.nodes[b.node].domain(shape)), cmp.Compare(a.at, b.at),
			cmp.Compare(a.gone, b.gone), strings.Compare(p.nodes[a.node].Name, p.nodes[b.node].Name))
	})
	p.entries[shape] = all
}

// room appends the entries of a node.
func (p *planner) room(all []entry, n, shape int) []entry {
	node, taken := &p.nodes[n], &p.taken[n]
	if node.domain(shape) < 0 {
		return all
	}
	have := 0
	for gone, fit := range node.Fits[shape] {
		if gone > 0 && !node.Ends[gone-1].Ends() {
			break
		}
		if free := int(float64(fit)*(1-taken.share) + 1e-6); free > have {
			all = append(all, entry{node: int32(n), gone: int32(gone), count: int32(free - have),
				at: runtimes.LastAt(node.Ends[:gone], p.ready)})
			have = free
		}
	}
	if gone, fit := node.most(shape); taken.share > 0 && taken.until.Ends() && fit > have {
		at := max(runtimes.LastAt(node.Ends[:gone], p.ready), taken.until.At(p.ready))
		all = append(all, entry{node: int32(n), gone: int32(gone), count: int32(fit - have), after: true, at: at})
	}
	return all
}

// most returns how many members fit when all pods have gone that end, and how many pods these are.
func (n *Node) most(shape int) (gone, fit int) {
	for gone < len(n.Ends) && n.Ends[gone].Ends() {
		gone++
	}
	return gone, n.Fits[shape][gone]
}

// choose returns the places with which the gang starts the soonest, within one domain and on nodes that may be used.
func (p *planner) choose(g *Gang, may func(node int) bool) (choice, bool) {
	var lists [][]entry
	for _, m := range g.Members {
		lists = append(lists, p.entries[m.Shape])
	}
	var best choice
	found := false
	for len(lists) > 0 && len(lists[0]) > 0 {
		domain := p.nodes[lists[0][0].node].domain(g.Members[0].Shape)
		parts := make([][]entry, len(lists))
		for i, list := range lists {
			of := func(e entry, d int) int { return cmp.Compare(p.nodes[e.node].domain(g.Members[i].Shape), d) }
			from, _ := slices.BinarySearchFunc(list, domain, of)
			to, _ := slices.BinarySearchFunc(list, domain+1, of)
			parts[i], lists[i] = list[from:to], list[to:]
		}
		if c, ok := p.fill(g, parts, may); ok && (!found || c.at < best.at) {
			best, found = c, true
		}
	}
	return best, found
}

// fill takes the first entries until all members have a place.
func (p *planner) fill(g *Gang, parts [][]entry, may func(node int) bool) (choice, bool) {
	var c choice
	defer func() {
		for _, place := range c.places {
			p.used[place.Node] = 0
		}
	}()
	nodes := 0
	for i, m := range g.Members {
		left := m.Count
		for _, e := range parts[i] {
			if left == 0 {
				break
			}
			n := int(e.node)
			if !may(n) || p.used[n] == 0 && nodes == g.MaxNodes {
				continue
			}
			_, full := p.nodes[n].most(m.Shape)
			count := min(left, int(e.count), int((1-p.used[n])*float64(full)+1e-6))
			if count == 0 {
				continue
			}
			if p.used[n] == 0 {
				nodes++
			}
			p.used[n] += float64(count) / float64(full)
			c.places = append(c.places, Place{Node: n, Members: i, Count: count, Gone: int(e.gone), Ready: e.at})
			c.after = append(c.after, e.after)
			c.at = max(c.at, e.at)
			left -= count
		}
		if left > 0 {
			return c, false
		}
	}
	return c, true
}

// start forecasts when all places are free.
func (p *planner) start(c *choice) runtimes.Forecast {
	p.ends = p.ends[:0]
	for i, place := range c.places {
		if i > 0 && c.places[i-1].Node == place.Node && c.places[i-1].Gone == place.Gone && c.after[i-1] == c.after[i] {
			// The same pods have to end for members of several classes.
			continue
		}
		if c.after[i] {
			p.ends = append(p.ends, p.taken[place.Node].until)
		}
		p.ends = append(p.ends, p.nodes[place.Node].Ends[:place.Gone]...)
	}
	return runtimes.Last(p.ends)
}

// take makes the places unavailable to the gangs behind until the end of this one.
func (p *planner) take(g *Gang, c *choice, start *runtimes.Forecast) {
	end := g.Run.After(start)
	for _, place := range c.places {
		t := &p.taken[place.Node]
		_, full := p.nodes[place.Node].most(g.Members[place.Members].Shape)
		if t.share += float64(place.Count) / float64(full); t.until.At(p.ready) < end.At(p.ready) {
			t.until = end
		}
		t.share = min(t.share, 1)
	}
}
