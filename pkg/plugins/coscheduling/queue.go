package coscheduling

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/obstacle"
	"berth.dev/berth/pkg/process"
)

// queue is the plugin where pods enter the queue and are ordered in it.
type queue struct{ shared *coordinator }

// Less orders the queue by keys that were frozen when the entities entered it, so it does no I/O and its answers about
// two queued entities never change.
func (q queue) Less(a, b fwk.QueuedEntityInfo) bool {
	ka, kb := q.key(a), q.key(b)
	if ka.Less(kb) {
		return true
	}
	if kb.Less(ka) {
		return false
	}
	// Creation is told in seconds: within one of them pods keep the order in which they came. Those that came at once,
	// as where a cluster is filled in memory, keep that of their creation.
	if ta, tb := a.GetTimestamp(), b.GetTimestamp(); !ta.Equal(tb) {
		return ta.Before(tb)
	}
	if ta, tb := created(a), created(b); !ta.Equal(tb) {
		return ta.Before(tb)
	}
	return nameOf(a) < nameOf(b)
}

func (q queue) key(e fwk.QueuedEntityInfo) gang.Key {
	if pod := podOf(e); pod != nil && q.shared.members.Has(pod) {
		if k, ok := q.shared.ledger.Cycles.Key(gang.UID(pod.UID)); ok {
			return k
		}
	}
	return q.shared.settings.classes.key(e)
}

// created is when a pod was created, zero for a group.
func created(e fwk.QueuedEntityInfo) time.Time {
	if pod := podOf(e); pod != nil {
		return pod.CreationTimestamp.Time
	}
	return time.Time{}
}

// podOf is the pod of an entity of the queue, nil for a group.
func podOf(e fwk.QueuedEntityInfo) *v1.Pod {
	if single, ok := e.(interface{ GetPod() *v1.Pod }); ok {
		return single.GetPod()
	}
	return nil
}

func nameOf(e fwk.QueuedEntityInfo) string {
	if named, ok := e.(klog.KMetadata); ok {
		return named.GetNamespace() + "/" + named.GetName()
	}
	return ""
}

// PreEnqueue holds members back until their gang has enough of them, and then all but the one that leads, until there
// is a plan to follow. It runs under the queue's lock and asks the ledger alone.
func (q queue) PreEnqueue(_ context.Context, pod *v1.Pod) *fwk.Status {
	why := q.shared.holdsBack(pod, q.shared.ledger.Cycles.Admit)
	if why == nil && q.shared.held.Pod(pod.UID) != nil {
		// It is about to enter the queue with others.
		why = obstacle.Obstacle{Cause: obstacle.Uninvited, Group: q.shared.members.ID(pod)}
	}
	if why != nil {
		return process.Reject(fwk.UnschedulableAndUnresolvable, why)
	}
	return nil
}

// holder returns the gang that holds the pod back, the zero ID if none does. One that is not held before the queue may
// be in its cycle.
func (c *coordinator) holder(pod *v1.Pod, here bool) gang.ID {
	ask := c.ledger.Cycles.MayEnter
	if here {
		ask = c.ledger.Cycles.Admit
	}
	if c.holdsBack(pod, ask) == nil {
		return gang.ID{}
	}
	return c.members.ID(pod)
}

// holdsBack returns why the pod's gang holds it back, as ask says of a member, nil if it does not or the pod is in
// none. A pod whose gang cannot be read is let in, so that its cycle fails with an event that names the mistake.
func (c *coordinator) holdsBack(pod *v1.Pod, ask func(gang.UID) (bool, obstacle.Reason)) obstacle.Reason {
	of, err := c.members.Of(pod)
	if err != nil || of.ID == (gang.ID{}) {
		return nil
	}
	if ok, why := ask(gang.UID(pod.UID)); !ok {
		return c.members.OwnReason(of.ID, pod, why)
	}
	return nil
}
