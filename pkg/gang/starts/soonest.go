package starts

import (
	"slices"
	"sort"
	"time"

	"berth.dev/berth/pkg/gang"
)

// End is when a pod ends by what is known of it.
type End struct {
	At  time.Time
	Pod gang.UID
}

// Stage is what a node has when some of its pods have ended: for how many members of each shape, and what is free as
// in Node.Free.
type Stage struct {
	Fits []int
	Free []int64
}

// Soonest returns what to keep so that the group starts as soon as it can by the ends that are known, and when that is.
// Pods without a known end stay. There is no result if the minimum would not fit once all others have ended.
func Soonest(p *Problem, now time.Time) (Choice, bool) {
	// What fits at one time fits at all later ones.
	times := []time.Time{now}
	for i := range p.Nodes {
		for _, end := range p.Nodes[i].Ends {
			if end.At.After(now) {
				times = append(times, end.At)
			}
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	times = slices.CompactFunc(times, time.Time.Equal)
	var best Choice
	at := sort.Search(len(times), func(i int) bool {
		// The last time for which this is true is the first of all.
		c, ok := Choose(p.by(times[i]))
		if ok {
			best = c
		}
		return ok
	})
	if at == len(times) {
		return Choice{}, false
	}
	best.Start = times[at]
	best.Last = p.last(&best)
	return best, true
}

// gone counts the pods of the node that have ended by then.
func (n *Node) gone(by time.Time) int {
	return sort.Search(len(n.Ends), func(k int) bool { return n.Ends[k].At.After(by) })
}

// by is the problem with what the nodes have by then in the place of what they would have without any pod.
func (p *Problem) by(then time.Time) *Problem {
	q := *p
	q.NoSpare = true
	q.Nodes = slices.Clone(p.Nodes)
	for i := range q.Nodes {
		n := &q.Nodes[i]
		gone := n.gone(then)
		n.Rooms = slices.Clone(n.Rooms)
		for s := range n.Rooms {
			room := &n.Rooms[s]
			room.Empty = n.Stages[gone].Fits[s]
			room.Now = min(room.Now, room.Empty)
			room.Pods = n.wait(s, room.Empty)
		}
		n.Free[1] = n.Stages[gone].Free
	}
	return &q
}

// wait is how many pods have to end until that number of members of the shape fit.
func (n *Node) wait(shape, members int) int {
	return sort.Search(len(n.Stages), func(k int) bool { return n.Stages[k].Fits[shape] >= members })
}

// last returns the pod that has to end last for what is kept, empty if none has to.
func (p *Problem) last(c *Choice) gang.UID {
	var last End
	for _, place := range c.Places {
		n := &p.Nodes[slices.IndexFunc(p.Nodes, func(n Node) bool { return n.Name == place.Node })]
		if k := n.wait(p.Classes[place.Class].Shape, place.Count); k > 0 && n.Ends[k-1].At.After(last.At) {
			last = n.Ends[k-1]
		}
	}
	return last.Pod
}
