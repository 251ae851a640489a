package hold

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/capacity"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/members"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/status"
	"berth.dev/berth/pkg/gang/work"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process"
)

// beginning is how long a pod takes, after it was let in, until its run time counts.
const beginning = 2 * time.Second

// Gate tells pods what they may not use. Scheduling cycles read what is kept without a lock.
type Gate struct {
	// Members knows the gangs of pods, and Cycles how they are on their way to a node.
	Members *members.Directory
	Cycles  *gang.Cycles
	// Profiles have the filters that decide where a pod may be.
	Profiles *process.Profiles
	// Owners know after what time the object that a gang belongs to ends its members.
	Owners *status.Owners
	// Away are the pods that were turned away.
	Away TurnedAway

	view atomic.Pointer[heldNodes]
}

// heldNodes is what is kept, as cycles and the loop read it.
type heldNodes struct {
	byGang map[gang.ID][]Hold
	byNode map[string][]Hold
	// effective are the holds that wait for no pod to go, in the order of the nodes.
	effective []*Hold
}

// Any reports whether anything is kept.
func (g *Gate) Any() bool { return g.view.Load() != nil }

// Against returns what is kept for others and pods of the gang may not use, but for what some of them may use or has to
// wait. The gang is tried again when a hold ends.
func (g *Gate) Against(id gang.ID, pods []*v1.Pod) []*capacity.Kept {
	kept := g.against(pods)
	if len(kept) > 0 {
		g.Away.gang(id)
	}
	return kept
}

// AgainstPod returns what is kept for gangs and the pod, which is tried alone, may not use, but for what has to wait.
func (g *Gate) AgainstPod(pod *v1.Pod) []*capacity.Kept { return g.against([]*v1.Pod{pod}) }

// State is another when something else is kept.
func (g *Gate) State() any { return g.view.Load() }

func (g *Gate) against(pods []*v1.Pod) []*capacity.Kept {
	view := g.view.Load()
	if view == nil || slices.ContainsFunc(pods, podview.BelongsToNode) {
		return nil
	}
	binds := make([]func(*Hold) bool, len(pods))
	for i, pod := range pods {
		binds[i] = g.binding(pod)
	}
	var kept []*capacity.Kept
	for _, o := range view.effective {
		if !slices.ContainsFunc(binds, func(binds func(*Hold) bool) bool { return !binds(o) }) {
			kept = append(kept, o.kept)
		}
	}
	return kept
}

// Backfills reports whether the pod runs with permission (berth.dev/backfill) in what is kept for the gang for its
// turn.
func (g *Gate) Backfills(id gang.ID, pod *v1.Pod) bool {
	view := g.view.Load()
	priority := corev1helpers.PodPriority(pod)
	return view != nil && id != (gang.ID{}) && slices.ContainsFunc(view.byNode[pod.Spec.NodeName], func(o Hold) bool {
		return o.To == id && o.Kind == forTurn && o.opensTo(priority)
	}) && g.AllowsBackfill(pod)
}

// binding returns what reports whether a hold counts against the pod, once the pods have gone that it waits for.
func (g *Gate) binding(pod *v1.Pod) func(*Hold) bool {
	id, priority := g.Members.ID(pod), corev1helpers.PodPriority(pod)
	backfills := sync.OnceValue(func() bool { return g.AllowsBackfill(pod) })
	run := sync.OnceValue(func() time.Duration { return g.RunTime(pod) })
	goneBy := func(start time.Time) bool {
		return !start.IsZero() && run() > 0 && !time.Now().Add(beginning+run()).After(start)
	}
	return func(o *Hold) bool {
		if g.served(o) {
			return false
		}
		if o.To == id {
			// Members that are planned together take what the plan says.
			return o.Role != "" && o.Role != g.role(pod) && g.Cycles.Standing(gang.UID(pod.UID)).Alone
		}
		return o.Priority >= priority &&
			(o.Kind != forTurn || (!o.opensTo(priority) || !backfills()) && !goneBy(o.start))
	}
}

// served reports whether the member has a node for whom something is kept.
func (g *Gate) served(o *Hold) bool { return o.Member != "" && g.Cycles.Standing(o.Member).Settled }

// role is that of the pod in its gang, empty without one.
func (g *Gate) role(pod *v1.Pod) string {
	return read.Role(pod, g.Members.Group(g.Members.ID(pod)))
}

// givesWay reports whether the pod runs in what is kept for a turn and has gone when the gang starts.
func (g *Gate) givesWay(pod *v1.Pod, turn *Hold) bool {
	if !turn.start.IsZero() {
		if end, known := work.EndOf(pod, g.RunTime(pod), time.Now()); known && !end.After(turn.start) {
			return true
		}
	}
	return turn.opensTo(corev1helpers.PodPriority(pod)) && g.Members.ID(pod) != turn.To && g.AllowsBackfill(pod)
}

// AllowsBackfill reports whether the pod may use what is kept for a turn.
func (g *Gate) AllowsBackfill(pod *v1.Pod) bool {
	return read.MayBackfill(g.Members.Group(g.Members.ID(pod)), pod)
}

// RunTime returns how long the pod runs by what is declared of it, or at the most by its limits; 0 if that is not
// known.
func (g *Gate) RunTime(pod *v1.Pod) time.Duration {
	id := g.Members.ID(pod)
	if id == (gang.ID{}) {
		return work.RunTime(pod, nil, 0)
	}
	return work.RunTime(pod, g.Members.Group(id), g.limit(pod))
}

// limit returns after what time the object that the pod's gang belongs to ends its pods, 0 if it does not or that is
// not known.
func (g *Gate) limit(pod *v1.Pod) time.Duration {
	of, err := g.Members.Of(pod)
	if err != nil || of.Owner.Kind == "" || g.Owners == nil {
		return 0
	}
	return g.Owners.Limit(of.Owner)
}

// Before returns the members for which something is kept against the pod, for plugins that count what is not seen on a
// node.
func (g *Gate) Before(pod *v1.Pod, nodes fwk.NodeInfoLister) []process.Planned {
	view := g.view.Load()
	if view == nil || podview.BelongsToNode(pod) {
		return nil
	}
	var planned []process.Planned
	binds := g.binding(pod)
	for node, kept := range view.byNode {
		for i := range kept {
			if o := &kept[i]; binds(o) && !Remain(o.after, nodes) {
				// A reservation names one member for several places, and what is kept for a return one that has gone.
				key := fmt.Sprintf("%s/%s/%d", o.Info.GetPod().UID, node, i)
				if o.Member != "" {
					key = string(o.Member)
				}
				planned = append(planned, process.Planned{Pod: o.Info.GetPod(), Key: key, Node: node})
			}
		}
	}
	slices.SortFunc(planned, func(a, b process.Planned) int { return cmp.Compare(a.Key, b.Key) })
	return planned
}

// Refuse returns the gang for which the capacity is kept that the pod would need on the node, one of nodes, if there is
// one. Resources, host ports and what plugins count on a node count here; what they count for the whole cluster they
// ask for, see Before.
func (g *Gate) Refuse(pod *v1.Pod, node fwk.NodeInfo, nodes fwk.NodeInfoLister) (to gang.ID, refused bool) {
	view := g.view.Load()
	if view == nil || len(view.byNode[node.Node().Name]) == 0 || podview.BelongsToNode(pod) {
		return to, false
	}
	kept, binds, filters, with := view.byNode[node.Node().Name], g.binding(pod), g.Profiles.Traits(pod), node
	var turn *Hold
	claims := false
	for i := range kept {
		o := &kept[i]
		if !binds(o) || Remain(o.after, nodes) {
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
		}
	}
	fits := func() bool { return filters.Fits(pod, with) }
	if claims = claims && filters.Claims(pod); with == node || !claims &&
		(fits() || turn != nil && g.withoutBackfill(with, node.GetPods(), turn) && fits()) {
		return gang.ID{}, false
	}
	g.Wait(pod)
	return to, true
}

// withoutBackfill takes off the node what runs in what is kept and has gone when the gang starts, and reports whether
// there is something. Or others would be turned away, and such pods evicted, for room that the gang does not need
// besides.
func (g *Gate) withoutBackfill(with fwk.NodeInfo, pods []fwk.PodInfo, turn *Hold) bool {
	some := false
	for _, info := range pods {
		if pod := info.GetPod(); g.givesWay(pod, turn) {
			some = with.RemovePod(klog.Background(), pod) == nil || some
		}
	}
	return some
}

// Wait has the pod woken when a hold ends, and its gang tried again, if it is in one.
func (g *Gate) Wait(pod *v1.Pod) {
	if id := g.Members.ID(pod); id != (gang.ID{}) {
		g.Away.gang(id)
	}
	g.Away.pod(read.RefOf(pod))
}
