package status

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/members"
	"berth.dev/berth/pkg/gang/obstacle"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/process"
	"berth.dev/berth/pkg/process/informers"
	"berth.dev/berth/pkg/sla"
)

// Source is where the controller finds gangs and pods.
type Source struct {
	Ledger   *gang.Ledger
	Members  *members.Directory
	Profiles *process.Profiles
	// Classes are those of the queue, nil if it has none.
	Classes  *sla.Order
	Election informers.Election
}

// Reservation is what is kept for a gang that has waited long.
type Reservation struct {
	Of gang.ID
	// Message describes it, empty if nothing is kept, and Nodes are the reserved nodes.
	Message string
	Nodes   []string
	// Start is when the gang is expected to start, nil if that is not known.
	Start *schedulingv1alpha1.PodGroupEstimatedStart
}

// State is what is known of a gang.
type State struct {
	// View is the zero value if Known is false.
	gang.View
	Known bool
	// Members are the pods of the gang, the oldest first, including those that have ended.
	Members []*v1.Pod
	// Held is why members wait for their gang.
	Held map[gang.Ref]obstacle.Reason
	// Reserved is what is kept for the gang.
	Reserved Reservation
	// OwnerUnread is set while the object that may declare the minimum has not been read.
	OwnerUnread bool
	// OtherScheduler names the scheduler of the oldest member if it is not this one.
	OtherScheduler string
}

// state is what is known of the gang now.
func (c *Controller) state(id gang.ID) State {
	of := &c.source
	v, known := of.Ledger.View(id)
	s := State{View: v, Known: known, OwnerUnread: c.api.Owners != nil && c.api.Owners.Unread(id)}
	if !known {
		return s
	}
	s.Held = of.Ledger.Held(id)
	for _, ref := range of.Ledger.Members(id) {
		pod := of.Members.Any(ref)
		if pod == nil {
			continue
		}
		if why := s.Held[ref]; why != nil {
			s.Held[ref] = of.Members.OwnReason(id, pod, why)
		}
		s.Members = append(s.Members, pod)
		if ref == v.Any && of.Profiles.Of(pod) == nil {
			s.OtherScheduler = pod.Spec.SchedulerName
		}
	}
	s.Reserved = c.reservationOf(id)
	return s
}

// Reserve sets the reservation in the status of the gang, and reports whether it is new. Only one gang at a time has a
// reservation: it replaces that of any other.
func (c *Controller) Reserve(next Reservation) (news bool) {
	if equality.Semantic.DeepEqual(c.reservationOf(next.Of), next) {
		return false
	}
	c.reserved.Store(&next)
	c.Enqueue(next.Of)
	return true
}

func (c *Controller) reservationOf(id gang.ID) Reservation {
	if r := c.reserved.Load(); r != nil && r.Of == id {
		return *r
	}
	return Reservation{Of: id}
}

// inTwoGroups reports whether a pending pod is in a gang and in a native group.
func (s *Source) inTwoGroups(pod *v1.Pod) bool {
	return pod.Spec.NodeName == "" && s.Members.Twice(pod)
}

// timedClass returns the class of the pod if it has a timeout, nil if it has none, or the pod is not pending or is
// another scheduler's.
func (s *Source) timedClass(pod *v1.Pod) *sla.Class {
	if !waits(pod) || pod.DeletionTimestamp != nil || s.Profiles.Of(pod) == nil {
		return nil
	}
	class, _ := podview.SLAClass(s.Classes, pod)
	if class == nil || class.Timeout == 0 {
		return nil
	}
	return class
}
