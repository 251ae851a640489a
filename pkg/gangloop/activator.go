package gangloop

import (
	"context"
	"slices"
	"time"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/evictor"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/retry"
	"berth.dev/berth/pkg/waitlist"
)

// activator has pods tried again that do not lead a gang, where capacity has come free for them.
type activator struct {
	ledger  *gang.Ledger
	list    *waitlist.List
	effects *Executor
	held    *HeldPods
	// preempting are pods for which others are evicted one by one; they are looked at next at lookAt.
	preempting *evictor.Preempting
	lookAt     time.Time
}

// stragglers activates the members of gangs that have started and lack some, where there is room for them now: before
// any other gang is invited, and whatever pause the queue has put on them. It is called for every pod that ends, so
// room where a member may not go must not wake it: such members would be tried without success, each with a search for
// pods to evict, as fast as pods end.
func (a *activator) stragglers(ctx context.Context) {
	var roomy []gang.Ref
	// The shapes of all are kept until the end: most members are alike, and a shape is counted on all nodes when it is
	// new.
	var shapes []capacity.ShapeKey
	for id, members := range a.ledger.Agenda.Stragglers() {
		fits := map[capacity.ShapeKey]bool{}
		for _, ref := range members {
			pod := a.list.Pod(ref)
			if pod == nil {
				continue
			}
			shape := a.list.Capacity.Acquire(pod)
			shapes = append(shapes, shape)
			if _, known := fits[shape]; !known {
				levels, err := a.list.Topology(id, pod)
				fits[shape] = err != nil || a.mayJoin(id, shape, levels.Required)
			}
			if fits[shape] {
				roomy = append(roomy, ref)
			}
		}
	}
	for _, shape := range shapes {
		a.list.Capacity.Release(shape)
	}
	a.effects.Activate(ctx, roomy)
}

// mayJoin reports whether a pod of the shape may fit where the members of its gang are that have started: in the domain
// that most of them share, where they have to share one.
func (a *activator) mayJoin(id gang.ID, shape capacity.ShapeKey, required []string) bool {
	held := a.ledger.Nodes(id)
	domain := a.list.Capacity.Cluster.Domain(held, required)
	if len(held) == 0 || slices.Contains(domain, "") {
		required, domain = nil, nil // such members may go anywhere, or to nodes without the label
	}
	return a.list.Capacity.Best([]capacity.Need{{Shape: shape, Count: 1}}, required, domain, false) > 0
}

// singles has pods in no gang tried again for which there is room by the account now.
func (a *activator) singles(gained []capacity.ShapeKey, now time.Time) gang.Effects {
	var effects gang.Effects
	for _, pod := range a.held.backlog.Next(gained, now) {
		effects.Activate = append(effects.Activate, gangview.RefOf(pod))
	}
	return effects
}

// preemptors activates the pods for which others are evicted one by one and for which there is room by the account, and
// forgets those that are gone or have a node.
func (a *activator) preemptors(ctx context.Context, now time.Time) {
	if now.Before(a.lookAt) {
		return
	}
	a.lookAt = retry.NextLook(now)
	var roomy []gang.Ref
	for _, ref := range a.preempting.Next() {
		pod := a.list.Pod(ref)
		if pod == nil || pod.Spec.NodeName != "" {
			a.preempting.Drop(ref.UID)
			continue
		}
		key := a.list.Capacity.Acquire(pod)
		if now, _ := a.list.Capacity.Slots(key); now > 0 {
			roomy = append(roomy, ref)
		}
		a.list.Capacity.Release(key)
	}
	a.effects.Activate(ctx, roomy)
}
