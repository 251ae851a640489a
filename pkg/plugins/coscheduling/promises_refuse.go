package coscheduling

import (
	"cmp"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/clusterwide"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/podview"
)

// toOthers returns what is promised to others than the gang that are at least as important, but for what has to wait.
func (p *promises) toOthers(id gang.ID, priority int32) []promise {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []promise
	for to, kept := range p.kept {
		for _, o := range kept {
			if to != id && o.priority >= priority && o.after == nil {
				out = append(out, o)
			}
		}
	}
	return out
}

// backfills reports whether the pod runs with permission (berth.dev/backfill) in what is promised to the gang for its turn.
func (p *promises) backfills(id gang.ID, pod *v1.Pod) bool {
	view := p.view.Load()
	return view != nil && id != (gang.ID{}) && slices.ContainsFunc((*view)[pod.Spec.NodeName], func(o promise) bool {
		return o.to == id && o.kind == forTurn
	}) && p.allowsBackfill(pod)
}

// binding returns what reports whether a promise counts against the pod.
func (p *promises) binding(pod *v1.Pod, nodes fwk.NodeInfoLister) func(*promise) bool {
	id, priority := p.members.id(pod), corev1helpers.PodPriority(pod)
	return func(o *promise) bool {
		return o.to != id && o.priority >= priority && (o.kind != forTurn || !p.allowsBackfill(pod)) && !remain(o.after, nodes)
	}
}

// Before returns the members for which something is promised against the pod, for plugins that count what is not seen on a node.
func (p *promises) Before(pod *v1.Pod, nodes fwk.NodeInfoLister) []clusterwide.Planned {
	view := p.view.Load()
	if view == nil || podview.BelongsToNode(pod) {
		return nil
	}
	var planned []clusterwide.Planned
	binds := p.binding(pod, nodes)
	for node, promised := range *view {
		for i := range promised {
			if o := &promised[i]; binds(o) {
				// A reservation names one member for several places, and what is kept for a return one that has gone.
				key := fmt.Sprintf("%s/%s/%d", o.info.GetPod().UID, node, i)
				if o.member != "" {
					key = string(o.member)
				}
				planned = append(planned, clusterwide.Planned{Pod: o.info.GetPod(), Key: key, Node: node})
			}
		}
	}
	slices.SortFunc(planned, func(a, b clusterwide.Planned) int { return cmp.Compare(a.Key, b.Key) })
	return planned
}

// Wait has the pod tried again when a promise ends.
func (p *promises) Wait(pod *v1.Pod) { p.note(pod) }

// refuse returns the gang to which the capacity is promised that the pod would need on the node, one of nodes, if there is one.
// Resources, host ports and what plugins count on a node count here; what they count for the whole cluster they ask for, see Before.
func (p *promises) refuse(pod *v1.Pod, node fwk.NodeInfo, nodes fwk.NodeInfoLister) (gang.ID, bool) {
	view := p.view.Load()
	if view == nil {
		return gang.ID{}, false
	}
	promised := (*view)[node.Node().Name]
	if len(promised) == 0 {
		return gang.ID{}, false
	}
	if podview.BelongsToNode(pod) {
		return gang.ID{}, false
	}
	with := node
	var to gang.ID
	var turn *promise
	harmed, claims := false, false
	binds, filters := p.binding(pod, nodes), p.filters(pod)
	for i := range promised {
		o := &promised[i]
		if !binds(o) {
			continue
		}
		if with == node {
			with = node.Snapshot()
		}
		with.AddPodInfo(o.info)
		to = o.to
		// Which devices its claims will get is not known before.
		claims = claims || o.kind != forTurn && filters.Claims(o.info.GetPod())
		if o.kind == forTurn {
			turn = o
			harmed = harmed || o.to.Namespace != pod.Namespace
		}
	}
	if with == node {
		return gang.ID{}, false
	}
	if claims = claims && filters.Claims(pod); !claims &&
		(filters.Fits(pod, with) || turn != nil && p.withoutBackfill(with, node.GetPods(), turn) && filters.Fits(pod, with)) {
		return gang.ID{}, false
	}
	if harmed && !p.harmed.Load() {
		p.harmed.Store(true)
	}
	p.note(pod)
	return to, true
}

// withoutBackfill takes off the node what runs in what is promised and goes when the gang starts, and reports whether there is something.
// Or others would be turned away, and such pods evicted, for room that the gang does not need besides.
func (p *promises) withoutBackfill(with fwk.NodeInfo, pods []fwk.PodInfo, turn *promise) bool {
	some := false
	for _, info := range pods {
		pod := info.GetPod()
		if corev1helpers.PodPriority(pod) <= turn.priority && p.members.id(pod) != turn.to && p.allowsBackfill(pod) {
			some = with.RemovePod(klog.Background(), pod) == nil || some
		}
	}
	return some
}

// note has the pod woken when a promise ends, and its gang tried again, if it is in one.
func (p *promises) note(pod *v1.Pod) {
	if id := p.members.id(pod); id != (gang.ID{}) {
		p.gangsAway.Store(id, true)
	}
	ref := refOf(pod)
	if _, known := p.turnedAway.Load(ref.UID); !known {
		p.turnedAway.LoadOrStore(ref.UID, turnedAway{ref: ref, at: p.arrivals.Add(1)})
	}
}
