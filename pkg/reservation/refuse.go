package reservation

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/clusterwide"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gangview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/starttime"
)

// ToOthers returns what is kept to others than the gang that are at least as important, but for what has to wait.
func (p *Holds) ToOthers(id gang.ID, priority int32) []Hold {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Hold
	for to, kept := range p.kept {
		for _, o := range kept {
			if to != id && o.Priority >= priority && o.after == nil && !o.behind[id] {
				out = append(out, o)
			}
		}
	}
	return out
}

// Against returns what is kept to others and pods of the gang may not use, but for what some of them may use or has to
// wait. The gang is tried again when a hold ends.
func (p *Holds) Against(id gang.ID, pods []*v1.Pod) []*capacity.Kept {
	view := p.view.Load()
	if view == nil || slices.ContainsFunc(pods, podview.BelongsToNode) {
		return nil
	}
	binds := make([]func(*Hold) bool, len(pods))
	for i, pod := range pods {
		binds[i] = p.binding(pod)
	}
	var kept []*capacity.Kept
	for _, e := range view.effective {
		if !slices.ContainsFunc(binds, func(binds func(*Hold) bool) bool { return !binds(e.hold) }) {
			kept = append(kept, e.kept)
		}
	}
	if len(kept) > 0 {
		p.gangsAway.Store(id, true)
	}
	return kept
}

// Blocks notes that what is kept to the gang for its turn keeps work of another namespace from starting.
func (p *Holds) Blocks(id gang.ID) {
	if _, known := p.blocking.Load(id); !known {
		p.blocking.Store(id, true)
	}
}

// Backfills reports whether the pod runs with permission (berth.dev/backfill) in what is kept to the gang for its turn.
func (p *Holds) Backfills(id gang.ID, pod *v1.Pod) bool {
	view := p.view.Load()
	return view != nil && id != (gang.ID{}) && slices.ContainsFunc(view.byNode[pod.Spec.NodeName], func(o Hold) bool {
		return o.To == id && o.Kind == forTurn
	}) && p.AllowsBackfill(pod)
}

// binding returns what reports whether a hold counts against the pod, once the pods have gone that it waits for.
func (p *Holds) binding(pod *v1.Pod) func(*Hold) bool {
	id, priority := p.GangOf(pod), corev1helpers.PodPriority(pod)
	backfills := sync.OnceValue(func() bool { return p.AllowsBackfill(pod) })
	return func(o *Hold) bool {
		return o.To != id && o.Priority >= priority && !o.behind[id] &&
			(o.Kind != forTurn || !backfills() && !p.mayEnter(pod, o.start))
	}
}

// givesWay reports whether the pod runs in what is kept for a turn and has gone when the gang starts.
func (p *Holds) givesWay(pod *v1.Pod, turn *Hold) bool {
	return turn.goes[gang.UID(pod.UID)] || corev1helpers.PodPriority(pod) <= turn.Priority && p.GangOf(pod) != turn.To &&
		p.AllowsBackfill(pod)
}

// mayEnter reports whether the pod may use capacity until a gang is to start: it will be gone by then, or has waited
// for much longer.
func (p *Holds) mayEnter(pod *v1.Pod, start *starttime.Reservation) bool {
	if start == nil {
		return false
	}
	now := time.Now()
	left := p.Forecasts.Left(pod, now)
	return p.Entry.MayEnter(start, &left, now.Sub(pod.CreationTimestamp.Time), now) != starttime.Refused
}

// Before returns the members for which something is kept against the pod, for plugins that count what is not seen on a
// node.
func (p *Holds) Before(pod *v1.Pod, nodes fwk.NodeInfoLister) []clusterwide.Planned {
	view := p.view.Load()
	if view == nil || podview.BelongsToNode(pod) {
		return nil
	}
	var planned []clusterwide.Planned
	binds := p.binding(pod)
	for node, kept := range view.byNode {
		for i := range kept {
			if o := &kept[i]; binds(o) && !Remain(o.after, nodes) {
				// A reservation names one member for several places, and what is kept for a return one that has gone.
				key := fmt.Sprintf("%s/%s/%d", o.Info.GetPod().UID, node, i)
				if o.Member != "" {
					key = string(o.Member)
				}
				planned = append(planned, clusterwide.Planned{Pod: o.Info.GetPod(), Key: key, Node: node})
			}
		}
	}
	slices.SortFunc(planned, func(a, b clusterwide.Planned) int { return cmp.Compare(a.Key, b.Key) })
	return planned
}

// Wait has the pod tried again when a hold ends.
func (p *Holds) Wait(pod *v1.Pod) { p.Note(pod) }

// Refuse returns the gang to which the capacity is kept that the pod would need on the node, one of nodes, if there is
// one. Resources, host ports and what plugins count on a node count here; what they count for the whole cluster they
// ask for, see Before.
func (p *Holds) Refuse(pod *v1.Pod, node fwk.NodeInfo, nodes fwk.NodeInfoLister) (gang.ID, bool) {
	kept := p.on(node, pod)
	if len(kept) == 0 {
		return gang.ID{}, false
	}
	binds := p.binding(pod)
	to, foreign := p.needs(pod, node, kept, func(o *Hold) bool { return binds(o) && !Remain(o.after, nodes) })
	if to == (gang.ID{}) {
		return gang.ID{}, false
	}
	for _, id := range foreign {
		p.Blocks(id)
	}
	p.Note(pod)
	return to, true
}

// Enters reports whether the pod, which is about to be bound to the node, uses capacity there that is kept for a gang
// until its start.
func (p *Holds) Enters(pod *v1.Pod, node fwk.NodeInfo) bool {
	kept := p.on(node, pod)
	if len(kept) == 0 {
		return false
	}
	id, priority := p.GangOf(pod), corev1helpers.PodPriority(pod)
	to, _ := p.needs(pod, node, kept, func(o *Hold) bool {
		return o.start != nil && o.To != id && o.Priority >= priority && !o.behind[id]
	})
	return to != (gang.ID{})
}

// on returns what is kept on the node that may count against the pod.
func (p *Holds) on(node fwk.NodeInfo, pod *v1.Pod) []Hold {
	view := p.view.Load()
	if view == nil || len(view.byNode[node.Node().Name]) == 0 || podview.BelongsToNode(pod) {
		return nil
	}
	return view.byNode[node.Node().Name]
}

// needs returns the gang to which the capacity is kept that the pod would need on the node, the zero ID if there is
// none, of the holds that count. foreign are those of other namespaces that have a turn.
func (p *Holds) needs(pod *v1.Pod, node fwk.NodeInfo, kept []Hold, binds func(*Hold) bool) (to gang.ID,
	foreign []gang.ID) {
	with := node
	var turn *Hold
	claims := false
	filters := p.Filters(pod)
	for i := range kept {
		o := &kept[i]
		if !binds(o) {
			continue
		}
		if with == node {
			with = node.Snapshot()
		}
		with.AddPodInfo(o.Info)
		to = o.To
		// Which devices its claims will get is not known before.
		claims = claims || o.Kind != forTurn && filters.Claims(o.Info.GetPod())
		if o.Kind == forTurn {
			turn = o
			if o.To.Namespace != pod.Namespace && (len(foreign) == 0 || foreign[len(foreign)-1] != o.To) {
				foreign = append(foreign, o.To)
			}
		}
	}
	if with == node {
		return gang.ID{}, nil
	}
	if claims = claims && filters.Claims(pod); !claims &&
		(filters.Fits(pod, with) || turn != nil && p.withoutBackfill(with, node.GetPods(), turn) && filters.Fits(pod, with)) {
		return gang.ID{}, nil
	}
	return to, foreign
}

// withoutBackfill takes off the node what runs in what is kept and has gone when the gang starts, and reports whether
// there is something. Or others would be turned away, and such pods evicted, for room that the gang does not need
// besides.
func (p *Holds) withoutBackfill(with fwk.NodeInfo, pods []fwk.PodInfo, turn *Hold) bool {
	some := false
	for _, info := range pods {
		if pod := info.GetPod(); p.givesWay(pod, turn) {
			some = with.RemovePod(klog.Background(), pod) == nil || some
		}
	}
	return some
}

// blocked reports whether pods of other namespaces were turned away for the turn of the gang since it was asked last.
func (p *Holds) blocked(id gang.ID) bool {
	_, blocked := p.blocking.LoadAndDelete(id)
	return blocked
}

// Note has the pod woken when a hold ends, and its gang tried again, if it is in one.
func (p *Holds) Note(pod *v1.Pod) {
	if id := p.GangOf(pod); id != (gang.ID{}) {
		p.gangsAway.Store(id, true)
	}
	ref := gangview.RefOf(pod)
	if _, known := p.turnedAway.Load(ref.UID); !known {
		p.turnedAway.LoadOrStore(ref.UID, turnedAway{ref: ref, at: p.arrivals.Add(1)})
	}
}
