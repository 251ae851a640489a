package coscheduling

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/podgroup"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/sla"
)

// groupSource answers what the controller of PodGroups asks.
func (c *coordinator) groupSource() podgroup.Source {
	return podgroup.Source{
		State:        c.groupState,
		Tally:        c.ledger.Tally,
		Pods:         c.pods,
		Pod:          c.members.Pod,
		GangOf:       c.members.ID,
		InTwoGroups:  func(pod *v1.Pod) bool { return pod.Spec.NodeName == "" && c.members.Twice(pod) },
		Ours:         func(pod *v1.Pod) bool { return c.profiles.Of(pod) != nil },
		TimedClass:   c.timedClass,
		TimedClasses: c.settings.classes.order.Timed(),
	}
}

// pods lists the pods that have not ended.
func (c *coordinator) pods() []*v1.Pod {
	pods, _ := c.members.Lister.List(labels.Everything()) // an error is of other listers than informers'
	return pods
}

// groupState returns what the controller of PodGroups has to know of the gang.
func (c *coordinator) groupState(id gang.ID) podgroup.State {
	v, known := c.ledger.View(id)
	s := podgroup.State{View: v, Known: known, OwnerUnread: c.told.owners.Unread(id)}
	if !known {
		return s
	}
	s.Held = c.ledger.Held(id)
	for _, ref := range c.ledger.Members(id) {
		pod := c.members.Any(ref)
		if pod == nil {
			continue
		}
		if why := s.Held[ref]; why != nil {
			s.Held[ref] = c.ownReason(id, pod, why)
		}
		s.Members = append(s.Members, pod)
		if ref == v.Any && c.profiles.Of(pod) == nil {
			s.OtherScheduler = pod.Spec.SchedulerName
		}
	}
	s.Reserved, s.ReservedNodes, s.EstimatedStart = c.loop.Reservations.Said(id)
	return s
}

// timedClass returns the class by whose timeout the pod waits, nil if it does not wait, or has none, or is another
// scheduler's.
func (c *coordinator) timedClass(pod *v1.Pod) *sla.Class {
	if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || podview.Finished(pod) || c.profiles.Of(pod) == nil {
		return nil
	}
	class, _ := podview.FindSLAClass(c.settings.classes.order, pod)
	if class == nil || class.Timeout == 0 {
		return nil
	}
	return class
}
