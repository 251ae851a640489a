package loop

import (
	"slices"
	"time"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/waiting"
)

// stragglers has the members of gangs that have started and lack some tried where there is room for them now, whatever
// pause the queue has put on them. It is called for every pod that ends, so room where a member may not go must not
// wake it: such members would be tried without success, each with a search for pods to evict, as fast as pods end.
func (l *Loop) stragglers() gang.Effects {
	var roomy []gang.Ref
	// The shapes of all are kept until the end: most members are alike, and a shape is counted on all nodes when it is
	// new.
	var shapes []capacity.ShapeKey
	for id, members := range l.Ledger.Agenda.Stragglers() {
		fits := map[capacity.ShapeKey]bool{}
		for _, ref := range members {
			pod := l.List.Members.Pod(ref)
			if pod == nil {
				continue
			}
			shape := l.List.Capacity.Acquire(pod)
			shapes = append(shapes, shape)
			if _, known := fits[shape]; !known {
				levels, err := l.List.Members.Topology(id, pod)
				fits[shape] = err != nil || l.mayJoin(id, shape, levels.Required)
			}
			if fits[shape] {
				roomy = append(roomy, ref)
			}
		}
	}
	for _, shape := range shapes {
		l.List.Capacity.Release(shape)
	}
	return gang.Effects{Activate: roomy}
}

// mayJoin reports whether a pod of the shape may fit where the members of its gang are that have started: in the domain
// that most of them share, where they have to share one.
func (l *Loop) mayJoin(id gang.ID, shape capacity.ShapeKey, required []string) bool {
	held := l.Ledger.Nodes(id)
	domain := l.List.Capacity.Cluster.Domain(held, required)
	if len(held) == 0 || slices.Contains(domain, "") {
		required, domain = nil, nil // such members may go anywhere, or to nodes without the label
	}
	return l.List.Capacity.Best([]capacity.Need{{Shape: shape, Count: 1}}, required, domain, false) > 0
}

// singles has pods of the backlog tried again for which there is room by the account now.
func (l *Loop) singles(gained []capacity.ShapeKey, now time.Time) gang.Effects {
	var effects gang.Effects
	for _, pod := range l.Held.backlog.Next(gained, now) {
		effects.Activate = append(effects.Activate, read.RefOf(pod))
	}
	return effects
}

// preemptors has the pods tried for which others are evicted one by one and for which there is room by the account.
func (l *Loop) preemptors(now time.Time) (effects gang.Effects) {
	if now.Before(l.due.preemptors) {
		return effects
	}
	l.due.preemptors = waiting.NextLook(now)
	for _, ref := range l.Evictor.Preemptors() {
		pod := l.List.Members.Pod(ref)
		if pod == nil || pod.Spec.NodeName != "" {
			continue
		}
		key := l.List.Capacity.Acquire(pod)
		if now, _ := l.List.Capacity.Slots(key); now > 0 {
			effects.Activate = append(effects.Activate, ref)
		}
		l.List.Capacity.Release(key)
	}
	return effects
}
