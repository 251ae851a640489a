package main

import (
	"strconv"
	"time"

	"berth.dev/berth/pkg/runtimes"
	"berth.dev/berth/pkg/starttime"
)

// timed keeps nodes by start times, with the packages that the scheduler uses.
type timed struct {
	settings starttime.Settings
	board    *starttime.Board
	know     knowledge
	book     *runtimes.Book
	holds    []starttime.Reservation
	// on holds for each node the held reservations, by position.
	on    [][]int
	jobs  map[string]*job
	known map[*job]*forecast
}

// forecast is one that was made at some time, and when to make the next one.
type forecast struct {
	left     runtimes.Forecast
	at, next float64
}

// mostPlanned is for how many gangs at a time the scheduler plans. Nodes are kept for the first few; the others are
// told a start.
const mostPlanned = 16

func newTimed(k knowledge, s starttime.Settings) *timed {
	return &timed{settings: s, board: starttime.NewBoard(s), know: k, book: runtimes.NewBook(), jobs: map[string]*job{},
		known: map[*job]*forecast{}}
}

func name(j *job) string { return strconv.Itoa(j.id) }

// left forecasts what is left of a job that runs, or the run of one that waits.
func (p *timed) left(now float64, j *job) runtimes.Forecast {
	k := p.known[j]
	age := 0.0
	if j.nodes != nil {
		age = now - j.start
	}
	if k == nil || now >= k.next {
		k = &forecast{left: p.know.left(p.book, j, age), at: now, next: now + max(120, age/10)}
		if j.nodes == nil {
			k.next = now + 1800
		}
		p.known[j] = k
	}
	if j.nodes == nil {
		return k.left
	}
	return k.left.Later(seconds(now - k.at))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func (p *timed) plan(c *cluster) {
	p.holds = nil
	if p.on == nil {
		p.on = make([][]int, len(c.nodes))
	}
	for i := range p.on {
		p.on[i] = p.on[i][:0]
	}
	var gangs []starttime.Gang
	for _, j := range c.queue {
		if m := j.members(); m > 0 && len(gangs) < mostPlanned {
			gangs = append(gangs, starttime.Gang{Name: name(j), Members: []starttime.Members{{Count: m}}, Run: p.left(c.now, j),
				Waited: seconds(c.now - j.submit), MaxNodes: len(c.nodes)})
			p.jobs[name(j)] = j
		}
	}
	if len(gangs) == 0 {
		return
	}
	nodes := make([]starttime.Node, len(c.nodes))
	for i := range c.nodes {
		ends := make([]runtimes.Forecast, len(c.nodes[i].jobs))
		fits := make([]int, len(ends)+1)
		for k, o := range c.nodes[i].jobs {
			ends[k] = p.left(c.now, o)
		}
		fits[len(ends)] = 1
		nodes[i] = starttime.Node{Name: strconv.Itoa(10000 + i), Ends: ends, Fits: [][]int{fits}}
	}
	for _, r := range p.board.Plan(nodes, gangs, at(c.now)) {
		j := p.jobs[r.Gang]
		if !j.toldOnce {
			j.toldOnce, j.told, j.toldAt = true, r.Told, c.now
		}
		if !r.Held {
			continue
		}
		for _, place := range r.Places {
			p.on[place.Node] = append(p.on[place.Node], len(p.holds))
		}
		p.holds = append(p.holds, r)
	}
}

func (p *timed) mayEnter(c *cluster, j *job, node int) bool {
	for _, i := range p.on[node] {
		r := &p.holds[i]
		if p.jobs[r.Gang] == j {
			return true
		}
		left := p.left(c.now, j)
		if p.settings.MayEnter(r, &left, seconds(c.now-j.submit), at(c.now)) == starttime.Refused {
			return false
		}
	}
	return true
}

func (p *timed) started(c *cluster, j *job) {
	delete(p.known, j)
	if j.members() > 0 {
		p.board.Started(name(j), at(c.now))
		delete(p.jobs, name(j))
	}
}

func (p *timed) ended(_ *cluster, j *job) {
	delete(p.known, j)
	p.know.ended(p.book, j)
}
