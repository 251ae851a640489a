package evictor

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/dryrun"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/reservation"
)

// try begins the moves that were found for the gang if filters agree that it and the moved pods fit then. It returns
// what to say about moves, or nothing if there are none.
func (m *Moves) try(ctx context.Context, p *Profile, id gang.ID, turn gang.Turn) (string, error) {
	e, now := p.evictor, time.Now()
	found, why := m.take(id, now)
	if found == nil || evictsFor(e, id) {
		return why, nil
	}
	all, err := p.framework.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return "", fmt.Errorf("listing nodes: %w", err)
	}
	if p.Lack(id, all) != nil || !found.upToDate(e, turn, all) {
		return "", nil
	}
	c := newChecking(ctx, p, found.request, turn, found.proposal)
	nodes, _ := c.nodes()
	var plan *dryrun.Plan
	if found.request.division != nil {
		plan, _, err = c.bySet()
	} else {
		plan, err = c.place(c.proposed(), turn.Need, dryrun.Part{Nodes: nodes})
	}
	if err != nil || !plan.Feasible() {
		return "", err
	}
	room, err := roomOf(found.request, reservation.ForMoves, plan)
	if err != nil {
		return "", err
	}
	// The moved pods must fit beside what the gang will have, and may use what has been kept for it elsewhere.
	e.Holds.Keep(id, reservation.ForMoves, room)
	pods, err := c.placeElsewhere(found)
	if err == nil {
		why = m.begin(e, found, pods, now)
	}
	if why == "" {
		e.Holds.Drop(id, isForMoves)
	}
	return why, err
}

// evictsFor reports whether pods of lower priority are told to go for the gang, or are going.
func evictsFor(e *Evictor, id gang.ID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.work["gang "+id.String()]
	return w != nil && w.HasVictims()
}

// upToDate reports whether the gang and the pods are as they were when the moves were found. A gang that is divided is
// divided again, for the nodes of the cycle.
func (f *movePlan) upToDate(e *Evictor, turn gang.Turn, nodes []fwk.NodeInfo) bool {
	for _, pod := range f.victims {
		if now := e.Capacity.Cluster.Pod(pod.UID); now == nil || now.DeletionTimestamp != nil {
			return false
		}
	}
	if before := f.request; before.division != nil {
		now := *before
		now.classes = nil
		if _, complete := now.addMembers(e.Members, turn.Members); !complete {
			return false
		}
		levels, err := gangview.TopologyOf(e.Members.Group(now.id), now.classes[0].pod)
		if err != nil || now.divide(e, levels, turn.Members, objectsOf(nodes)) != nil || !now.asks(before) {
			return false
		}
		f.request = &now
	}
	return f.request.need.Total == turn.Need.Total
}

// placeElsewhere places what replaces the moved pods on the nodes that were found for them, as if they were gone. It
// returns nothing if one of them does not fit.
func (c *checking) placeElsewhere(found *movePlan) ([]movedPod, error) {
	turn := gang.Turn{Kind: gang.Lead, Need: gang.Minimum{Total: len(found.victims)}}
	for _, pod := range found.victims {
		turn.Members = append(turn.Members, gang.Member{Ref: gangview.RefOf(pod), Ours: true, Class: string(pod.UID),
			Priority: corev1helpers.PodPriority(pod)})
	}
	turn.Of = turn.Need
	var nodes []fwk.NodeInfo
	for _, name := range sets.List(found.elsewhere) {
		if n, err := c.profile.framework.SnapshotSharedLister().NodeInfos().Get(name); err == nil {
			nodes = append(nodes, n)
		}
	}
	planner := c.profile.planner.Moving()
	plan, err := planner.Place(&dryrun.Work{Ctx: c.ctx}, gang.ID{}, turn, dryrun.Part{Nodes: nodes}, nil,
		func(d *dryrun.Run) error {
			d.Elsewhere = c.placed(found.victims)
			return nil
		})
	if err != nil || !plan.Feasible() {
		return nil, err //nolint:wrapcheck // it says what it is about
	}
	to := make(map[gang.UID]string, len(plan.Assignments))
	for _, placed := range plan.Assignments {
		to[placed.UID] = placed.Node
	}
	pods := make([]movedPod, len(found.victims))
	for i, pod := range found.victims {
		pods[i] = movedPod{Pod: pod, to: to[gang.UID(pod.UID)]}
	}
	return pods, nil
}
