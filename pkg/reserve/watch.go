package reserve

import "time"

// Watch finds nodes that are kept for nothing: no pod ends there while all end elsewhere. Run times are unknown,
// so a node is kept for how few pods have to end there, and one of those may never end.
type Watch struct {
	// kept holds the nodes that are kept, with how many pods have to end there and since when none has.
	kept map[string]standstill
	// stuck holds since when nothing had ended on nodes that are stuck.
	stuck map[string]time.Time
	// turns holds when all pods have last ended on a node, and the time before that.
	turns map[string]turnover
}

// turnover is when all pods of a node were seen to have ended: the last two times, zero without.
type turnover struct{ begun, last, before time.Time }

type standstill struct {
	since time.Time
	pods  int
}

// Mark says of the nodes which are stuck: until the pods have gone that were there then.
func (w *Watch) Mark(nodes []Node) {
	for i := range nodes {
		n := &nodes[i]
		since, was := w.stuck[n.Name]
		n.Stuck = was && n.Pods > 0 && !n.Oldest.After(since)
		if was && !n.Stuck {
			delete(w.stuck, n.Name)
		}
	}
}

// Look follows the nodes of the group whose turn it is, and marks them. A node that is kept is stuck when, since a pod
// has ended there, all pods have ended twice on that many nodes that are not kept as are kept and not free. Once is not
// enough: of pods that run equally long, those on the kept node could be about to end.
func (w *Watch) Look(nodes []Node, now time.Time) {
	w.Mark(nodes)
	w.follow(nodes, now)
	kept := map[string]standstill{}
	for i := range nodes {
		n := &nodes[i]
		if n.Stuck || !n.Kept || n.Pods == 0 {
			continue
		}
		before, known := w.kept[n.Name]
		if !known || n.Pods < before.pods {
			before.since = now
		}
		kept[n.Name] = standstill{before.since, n.Pods}
	}
	w.kept = kept
	for name, since := range w.stuck {
		if now.Sub(since) > longestRest {
			// The node may be gone.
			delete(w.stuck, name)
		}
	}
	for i := range nodes {
		n := &nodes[i]
		if k, waits := kept[n.Name]; waits && w.turnedOver(nodes, k.since) >= len(kept) {
			if w.stuck == nil {
				w.stuck = map[string]time.Time{}
			}
			n.Stuck, w.stuck[n.Name] = true, k.since
		}
	}
}

// follow notes on which nodes all pods have ended since the last time.
func (w *Watch) follow(nodes []Node, now time.Time) {
	turns := make(map[string]turnover, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		t, known := w.turns[n.Name]
		switch {
		case !known:
			t.begun = now
		case n.Pods > 0 && n.Oldest.After(t.begun):
			t.begun, t.last, t.before = now, now, t.last
		}
		turns[n.Name] = t
	}
	w.turns = turns
}

// turnedOver counts the nodes that are not kept and on which all pods have ended twice since.
func (w *Watch) turnedOver(nodes []Node, since time.Time) int {
	count := 0
	for i := range nodes {
		if n := &nodes[i]; !n.Kept && w.turns[n.Name].before.After(since) {
			count++
		}
	}
	return count
}
