package advise

import (
	"cmp"
	"context"
	"slices"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/pkg/eviction"
	"berth.dev/berth/pkg/minheap"
)

// proposals are sets of rooms that may be enough for the pods, those that cost least first, up to one more than
// are ever tried.
type proposals struct {
	needs int
	// single says that room for one pod is looked for.
	single bool
	// Of a unit with several classes, the view is asked how many pods still find no place with the rooms; asked is how
	// often it was.
	view    *view
	unit    *unit
	classes []*class
	nodes   []fwk.NodeInfo
	asked   int
	sets    [][]room
	// free is for how many pods there is room with what has been added; best is how many of them a node has.
	free int
	best map[string]int
	made []room
}

// add takes the next room, those that cost least for each pod first, and says whether more are of use.
func (p *proposals) add(r room) (more bool) {
	switch {
	case p.single:
		if len(r.units) > 0 && p.short([]room{r}) <= 0 {
			p.sets = append(p.sets, []room{r})
		}
	case len(r.units) == 0: // what is free counts first
		p.free += r.hosts
		p.best[r.node] = r.hosts
	case r.hosts > p.best[r.node]:
		p.made = slices.DeleteFunc(p.made, func(other room) bool { return other.node == r.node })
		p.made = append(p.made, r)
		p.free += r.hosts - p.best[r.node]
		p.best[r.node] = r.hosts
		if p.free < p.needs {
			break
		}
		if n := p.short(p.made); n > 0 {
			p.needs = p.free + (n+1)/2 // a place for the largest may do for several
			break
		}
		p.sets = append(p.sets, slices.Clone(p.made))
	}
	return len(p.sets) <= mostTries && p.asked < mostSets
}

// short is how many pods still find no place with the rooms, as far as their number does not tell.
func (p *proposals) short(rooms []room) int {
	if len(p.classes) == 1 {
		return 0
	}
	p.asked++
	return p.view.missing(p.classes, p.nodes, p.unit, rooms)
}

// found is a room that waits for its turn.
type found struct {
	room
	pods int
	cost eviction.Cost
	// at is its node, turn its place among the rooms of the node, and search the number of the search that found it.
	at, turn, search int
}

// compareFound has the room first that moves fewest pods for each that it hosts, then that which costs less.
func compareFound(a, b found) int {
	return cmp.Or(cmp.Compare(a.pods*b.hosts, b.pods*a.hosts), a.cost.Compare(b.cost),
		cmp.Compare(a.node, b.node), cmp.Compare(a.turn, b.turn))
}

// scan is the search of nodes for ways to make room for pods of one class. Which units of a node could run elsewhere is
// asked only when the room that they make has its turn.
type scan struct {
	search *search
	view   *view
	trials []*trial
	// movable are the units of each node that are not known to have to stay.
	movable [][]*unit
	// settled are nodes whose rooms were found, and searches is how often they were looked for again.
	settled  []bool
	searches []int
	queue    minheap.Heap[found]
	out      *proposals
}

// propose asks the filters of the unit's profile on which nodes it would fit if some units were gone. A gang that must
// stay within one domain is proposed for each in turn.
func (v *view) propose(s *search, u *unit) [][]room {
	s.say("looking for nodes that could make room for %s", u)
	classes := v.classes(s, u)
	if classes == nil {
		return nil
	}
	var sets [][]room
	for _, nodes := range v.domains(u.Levels) {
		if s.over() {
			break
		}
		c, needs, left := v.short(classes, nodes, u)
		out := &proposals{needs: needs, single: needs == 1, best: map[string]int{}, view: v, unit: u, classes: classes,
			nodes: nodes}
		v.scan(s, c, left, out)
		sets = append(sets, out.sets...)
	}
	slices.SortStableFunc(sets, func(a, b []room) int { return costOf(a).Compare(costOf(b)) })
	return sets[:min(len(sets), mostTries+1)]
}

// scan looks for room for pods of a class until there are enough proposals.
func (v *view) scan(s *search, c *class, nodes []fwk.NodeInfo, out *proposals) {
	n, ctx := len(nodes), context.Background()
	y := &scan{search: s, view: v, queue: minheap.Heap[found]{Compare: compareFound}, trials: make([]*trial, n),
		movable: make([][]*unit, n), settled: make([]bool, n),
		searches: make([]int, n), out: out}
	for i, info := range nodes {
		for _, other := range s.units[info.Node().Name] {
			if other.Fixed == "" && v.maySpare(other) {
				y.movable[i] = append(y.movable[i], other)
			}
		}
	}
	c.fw.Parallelizer().Until(ctx, n, func(i int) {
		if !s.over() && c.mayBeOn(nodes[i].Node().Name) {
			y.trials[i] = c.newTrial(ctx, v.devices, nodes[i])
		}
	}, "advise")
	y.look(ctx, c.fw)
}

// look finds rooms that move one unit, then two, and so on, until there are enough that no other can be cheaper.
func (y *scan) look(ctx context.Context, fw framework.Framework) {
	rooms := make([][]room, len(y.trials))
	most := mostUnits
	if !y.out.single {
		most = 1 // all rooms of a node are found at once
	}
	for size := 1; size <= most; size++ {
		fw.Parallelizer().Until(ctx, len(y.trials), func(i int) {
			if t := y.trials[i]; t != nil && !y.settled[i] && !y.search.over() {
				rooms[i] = y.of(i, size)
			}
		}, "advise")
		for i, found := range rooms {
			y.push(i, found)
			rooms[i] = nil
		}
		// A set of more units moves more pods.
		for y.queue.Len() > 0 && (size == most || y.queue.Items[0].pods <= size) {
			if y.search.over() || !y.next(size) {
				return
			}
		}
	}
}

func (y *scan) push(i int, rooms []room) {
	for turn, r := range rooms {
		if y.searches[i] > 0 && len(r.units) == 0 {
			continue // what is free has been counted
		}
		y.settled[i] = true
		only := []room{r}
		y.queue.Push(found{room: r, pods: podsOf(only), cost: costOf(only), at: i, turn: turn, search: y.searches[i]})
	}
}

// of are the rooms of a node by the number of units that they move.
func (y *scan) of(i, size int) []room {
	t := y.trials[i]
	if y.out.single {
		return t.one(y.movable[i], size)
	}
	return t.several(y.movable[i], y.out.needs)
}

// next takes the cheapest room. If a unit has to stay that it moves, the rooms of its node are looked for without that
// unit.
func (y *scan) next(size int) (more bool) {
	r := y.queue.Pop()
	if r.search < y.searches[r.at] {
		return true
	}
	stays := slices.IndexFunc(r.units, func(u *unit) bool { return !y.view.canMove(u) })
	if stays < 0 {
		return y.out.add(r.room)
	}
	y.movable[r.at] = slices.DeleteFunc(slices.Clone(y.movable[r.at]), func(u *unit) bool { return u == r.units[stays] })
	y.settled[r.at] = false
	y.searches[r.at]++
	for less := 1; less <= size && !y.settled[r.at]; less++ {
		y.push(r.at, y.of(r.at, less))
	}
	return true
}
