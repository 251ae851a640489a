package coscheduling

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/kubeview"
)

// reservation keeps nodes for one gang. It is never changed once published, but for the pods that it turned away.
type reservation struct {
	id       gang.ID
	priority int32
	nodes    map[string]bool
	since    time.Time
	until    time.Time
	// turnedAway holds the pods to wake when the reservation ends, by UID.
	turnedAway sync.Map
}

// Filter keeps a member off nodes that its plan does not give it, and other pods off the nodes that are reserved for a gang.
func (p *Plugin) Filter(_ context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) *fwk.Status {
	if data, err := state.Read(seatsKey); err == nil && !data.(seats).Has(node.Node().Name) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "node(s) that the gang's plan does not give to this member")
	}
	r := p.shared.reserved.Load()
	if r == nil || !r.nodes[node.Node().Name] || corev1helpers.PodPriority(pod) > r.priority || p.shared.mayUseReserved(pod) {
		return nil
	}
	if isMember(pod) {
		if id, _, _ := kubeview.GangOf(pod); id == r.id {
			return nil
		}
	}
	r.turnedAway.Store(pod.UID, gang.Ref{UID: gang.UID(pod.UID), Namespace: pod.Namespace, Name: pod.Name})
	return fwk.NewStatus(fwk.Unschedulable, "node(s) kept for gang "+r.id.String())
}

// mayUseReserved reports whether the pod may run on any reserved node: backfill does, and what belongs to every node.
func (c *coordinator) mayUseReserved(pod *v1.Pod) bool {
	if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "DaemonSet" {
		return true
	}
	id, _, _ := kubeview.GangOf(pod)
	return kubeview.MayBackfill(c.podGroup(id), pod)
}

// backfills reports whether the pod runs on a node that is kept for the gang, by leave.
func (c *coordinator) backfills(id gang.ID, pod *v1.Pod, node string) bool {
	r := c.reserved.Load()
	if r == nil || r.id != id || !r.nodes[node] {
		return false
	}
	group, _, _ := kubeview.GangOf(pod)
	return kubeview.MayBackfill(c.podGroup(group), pod)
}

// holds reports whether nodes are kept for the gang.
func (c *coordinator) holds(id gang.ID) bool {
	r := c.reserved.Load()
	return r != nil && r.id == id
}

// reserve ends the reservation if its gang does not wait any more or its time is over, and gives the next one to the
// first of the gangs that wait and would fit if the cluster was empty.
func (c *coordinator) reserve(ctx context.Context, now time.Time) {
	if !c.settings.reserve {
		return
	}
	waiting, _ := c.ledger.Due(now.Add(c.settings.backoff.Max), func(time.Time) bool { return true })
	if r := c.reserved.Load(); r != nil {
		waits := slices.ContainsFunc(waiting, func(d gang.Due) bool { return d.ID == r.id })
		v, known := c.ledger.View(r.id)
		if known && now.Before(r.until) && (waits || v.Settled() < v.MinMember) {
			reservationAge.Set(now.Sub(r.since).Seconds())
			return
		}
		if waits {
			c.hadTurn[r.id] = now.Add(c.settings.ttl)
		}
		c.end(ctx, r)
	}
	maps.DeleteFunc(c.hadTurn, func(_ gang.ID, until time.Time) bool { return now.After(until) })
	for i := range waiting {
		d := &waiting[i]
		if _, had := c.hadTurn[d.ID]; had {
			continue
		}
		if nodes := c.nodesFor(d); nodes != nil {
			klog.FromContext(ctx).V(2).Info("Keeping nodes for a gang", "gang", d.ID, "nodes", len(nodes))
			c.reserved.Store(&reservation{id: d.ID, priority: d.Priority(), nodes: nodes, since: now, until: now.Add(c.settings.ttl)})
			return
		}
	}
}

// nodesFor returns the nodes on which the gang would fit if they were empty, the ones that have the most room now first;
// nil if there are not enough of them or more than may be kept.
func (c *coordinator) nodesFor(d *gang.Due) map[string]bool {
	kept := map[string]bool{}
	fits := 0
	for _, class := range slices.Sorted(maps.Keys(d.Classes)) {
		pod := c.pod(d.Example[class])
		if pod == nil {
			return nil
		}
		empty, free := c.room.Slots(pod, true), c.room.Slots(pod, false)
		names := slices.Sorted(maps.Keys(empty))
		slices.SortStableFunc(names, func(a, b string) int { return free[b]*empty[a] - free[a]*empty[b] })
		want := min(d.Classes[class], d.Need-fits)
		for _, name := range names {
			if want <= 0 {
				break
			}
			taken := min(want, empty[name])
			want -= taken
			fits += taken
			kept[name] = true
		}
	}
	if fits < d.Need || len(kept)*100 > c.room.Nodes()*c.settings.maxPercent {
		return nil
	}
	return kept
}

// end gives up a reservation and wakes the pods that it turned away.
func (c *coordinator) end(ctx context.Context, r *reservation) {
	c.reserved.Store(nil)
	reservationAge.Set(0)
	var woken gang.Effects
	r.turnedAway.Range(func(_, ref any) bool {
		woken.Activate = append(woken.Activate, ref.(gang.Ref))
		return true
	})
	c.carryOut(ctx, woken)
	c.roomMade()
}
