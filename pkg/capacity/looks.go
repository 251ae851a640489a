package capacity

import "sync/atomic"

// Looks is the part of an index for the loop, which looks at the gangs that wait: what has changed since the last look.
type Looks struct{ *store }

// looks counts what happens around the looks at gangs.
type looks struct {
	// eased is set if a bound pod went or changed in a way that no shape shows.
	eased bool
	// changes counts the changes of the cluster.
	changes uint64
	// asked counts the looks at gangs, answered is the last look after which the gangs that may fit were in the queue.
	asked    uint64
	answered atomic.Uint64
}

// State returns a number that changes with each change of the cluster that the index sees.
func (x *Looks) State() uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.looks.changes
}

// Refresh begins a look at gangs. It returns the shapes that gained since it was last called: more of their pods fit on
// some node, or a node on which they fit if it is empty came or changed its labels, annotations, taints or resources.
// eased reports whether a bound pod went or changed otherwise, which may help pods that are blocked for reasons that
// are not in this index.
func (x *Looks) Refresh() (gained []ShapeKey, eased bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.looks.asked++
	x.memo.besides = nil
	for _, s := range x.shapes.live {
		if s.gained {
			s.gained = false
			gained = append(gained, s.key)
		}
	}
	eased, x.looks.eased = x.looks.eased, false
	return gained, eased
}

// Answer ends the look that Refresh began: the gangs that may fit now are in the queue.
func (x *Looks) Answer() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.looks.answered.Store(x.looks.asked)
}

// FreedOn reports whether something became free on the node that the look of that number had not answered.
func (x *Looks) FreedOn(node string, answered uint64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := x.nodes.byName[node]
	return n == nil || n.node == nil || n.freed > answered
}

// FreedAfter reports whether something became free on the node after the last look at gangs had begun.
func (x *Looks) FreedAfter(node string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := x.nodes.byName[node]
	return n == nil || n.node == nil || n.freed > x.looks.asked
}

// Answered is the number of the last look at gangs that has ended. It takes no lock.
func (x *Looks) Answered() uint64 { return x.looks.answered.Load() }

// FreedFor reports whether something became free, which the look of that number had not answered, on a node on which a
// pod of the shape fits.
func (x *Looks) FreedFor(key ShapeKey, answered uint64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.shapes.byKey[key]
	if s == nil {
		return false
	}
	for _, n := range x.nodes.byName {
		if n.node != nil && n.freed > answered && s.slotsOn(n) > 0 {
			return true
		}
	}
	return false
}
