package main

import (
	"fmt"
	"time"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/reserve"
)

// today keeps nodes without regard to time, by the rule of pkg/gang: those on which the fewest pods have to end, for one
// gang of at most half of the nodes at a time.
type today struct {
	turns  *reserve.Turns
	watch  reserve.Watch
	jobs   map[gang.ID]*job
	kept   map[int]*job
	holder *job
}

func newToday(ttl time.Duration) *today {
	return &today{turns: reserve.NewTurns(ttl), jobs: map[gang.ID]*job{}, kept: map[int]*job{}}
}

func idOf(j *job) gang.ID { return gang.ID{Namespace: j.user, Name: fmt.Sprint(j.id)} }

func at(seconds float64) time.Time {
	return time.Unix(1_000_000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func (t *today) plan(c *cluster) {
	now := at(c.now)
	if t.holder != nil {
		if r, ok := t.nearest(c, t.holder, now); ok && t.turns.Continue(r.Pods, now) {
			t.keep(t.holder, r)
			return
		}
		t.turns.End(idOf(t.holder), now)
		t.holder = nil
	}
	clear(t.kept)
	for _, j := range c.queue {
		if j.members() == 0 || c.now-j.submit < 15 || !t.turns.MayBegin(idOf(j), now) {
			continue
		}
		r, ok := t.nearest(c, j, now)
		if !ok {
			t.turns.Skip(idOf(j), now)
			continue
		}
		t.turns.Begin(idOf(j), r.Pods, now)
		t.holder = j
		t.keep(j, r)
		return
	}
}

func (t *today) keep(j *job, r reserve.Choice) {
	clear(t.kept)
	for _, place := range r.Places {
		var n int
		_, _ = fmt.Sscan(place.Node, &n)
		t.kept[n] = j
	}
}

func (t *today) nearest(c *cluster, j *job, now time.Time) (reserve.Choice, bool) {
	m := j.members()
	p := &reserve.Problem{Need: gang.Minimum{Total: m}, Classes: []reserve.Class{{Count: m}}, MaxNodes: len(c.nodes) / 2}
	for i := range c.nodes {
		n := &c.nodes[i]
		room := reserve.Room{Empty: 1, Pods: len(n.jobs), Free: 1000 * n.free / gpusPerNode}
		if len(n.jobs) == 0 {
			room.Now = 1
		}
		var oldest time.Time
		for _, o := range n.jobs {
			if s := at(o.start); oldest.IsZero() || s.Before(oldest) {
				oldest = s
			}
		}
		p.Nodes = append(p.Nodes, reserve.Node{Name: fmt.Sprintf("%04d", i), Kept: t.kept[i] == j, Pods: len(n.jobs), Oldest: oldest, Rooms: []reserve.Room{room}})
	}
	if t.holder == j {
		t.watch.Look(p.Nodes, now)
	} else {
		t.watch.Mark(p.Nodes)
	}
	return reserve.Choose(p)
}

func (t *today) mayEnter(_ *cluster, j *job, node int) bool {
	to := t.kept[node]
	return to == nil || to == j
}

func (t *today) started(c *cluster, j *job) {
	if t.holder == j {
		t.holder = nil
		clear(t.kept)
	}
	if j.members() > 0 {
		t.turns.Forget(idOf(j), true, at(c.now))
	}
}

func (t *today) ended(*cluster, *job) {}
