package coscheduling

import (
	"context"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/gang"
)

// reservations gives gangs that have waited long a turn each: what they need is promised to them on nodes that are the nearest to
// being free, so that smaller work cannot take it again and again.
type reservations struct {
	// current has the turn, if its ID is not zero, from since to until.
	current      gang.ID
	since, until time.Time
	// hadTurn holds until when gangs whose turn is over get no other.
	hadTurn map[gang.ID]time.Time
	// blockedSince holds since when gangs wait.
	blockedSince map[gang.ID]time.Time
}

// reserve ends the turn of a gang that does not wait any more or whose time is over, and gives the next one to the first of the
// gangs that have waited long enough and would fit if the cluster was empty.
func (w *waker) reserve(ctx context.Context, now time.Time) {
	if !w.settings.reserve {
		return
	}
	t := &w.turns
	if t.current != (gang.ID{}) {
		g, waits := w.waiting[t.current]
		if waits && now.Before(t.until) && len(w.promises.to(t.current)) > 0 {
			reservationAge.Set(now.Sub(t.since).Seconds())
			return
		}
		if waits {
			t.hadTurn[g.ID] = now.Add(w.settings.ttl)
		}
		w.promises.drop(t.current, func(o promise) bool { return o.kind == forTurn })
		t.current = gang.ID{}
		reservationAge.Set(0)
	}
	maps.DeleteFunc(t.hadTurn, func(_ gang.ID, until time.Time) bool { return now.After(until) })
	var first *waitingGang
	for id, g := range w.waiting {
		if _, had := t.hadTurn[id]; had || g.Fresh || now.Sub(g.Since) < w.settings.patience {
			continue
		}
		if first == nil || g.Key.Less(first.Key) {
			first = g
		}
	}
	if first == nil {
		return
	}
	kept := w.nearest(first)
	if kept == nil {
		t.hadTurn[first.ID] = now.Add(w.settings.patience)
		return
	}
	klog.FromContext(ctx).V(2).Info("Promising nodes to a gang", "gang", first.ID, "members", len(kept), "until", now.Add(w.settings.ttl))
	t.current, t.since, t.until = first.ID, now, now.Add(w.settings.ttl)
	w.promises.keep(first.ID, forTurn, kept)
}

// nearest returns promises for what the gang needs on the nodes on which the most of it is free already; nil if there are not
// enough nodes or it would take more of them than may be kept.
func (w *waker) nearest(g *waitingGang) []promise {
	var kept []promise
	nodes := map[string]bool{}
	missing := g.Need.Total
	for i, c := range g.Classes {
		if g.pods[i] == nil {
			return nil
		}
		info, err := infoOf(g.pods[i])
		if err != nil {
			return nil
		}
		type room struct {
			node       *v1.Node
			now, empty int
		}
		var rooms []room
		w.headroom.each(g.shapes[i].shape, func(node *v1.Node, now, empty int) {
			if empty > 0 {
				rooms = append(rooms, room{node, now, empty})
			}
		})
		slices.SortFunc(rooms, func(a, b room) int {
			if free := b.now*a.empty - a.now*b.empty; free != 0 {
				return free
			}
			if a.node.Name < b.node.Name {
				return -1
			}
			return 1
		})
		want := min(c.Count, max(missing, g.Need.Roles[c.Role]))
		for _, r := range rooms {
			if want <= 0 {
				break
			}
			for range min(want, r.empty) {
				kept = append(kept, promise{to: g.ID, kind: forTurn, priority: g.Key.Priority, node: r.node.Name, info: info})
				nodes[r.node.Name] = true
				want--
				missing--
			}
		}
	}
	if missing > 0 || len(nodes)*100 > w.headroom.size()*w.settings.maxPercent {
		return nil
	}
	return kept
}
