package obstacle

import (
	"fmt"
	"strings"
	"time"

	"berth.dev/berth/pkg/plural"
)

// Reason is why a pod or a node is rejected, or why a group does not start now. It stays a value until a user is told.
type Reason interface {
	// String says it in one sentence with names and amounts.
	String() string
	// Kind is the same for reasons that differ in names and amounts only.
	Kind() string
}

// Text is a reason that is only known as text, such as what is wrong with an object.
type Text string

// String returns the text.
func (t Text) String() string { return string(t) }

// Kind returns the text, in which names and amounts cannot be told apart.
func (t Text) Kind() string { return string(t) }

// Cause is what kind of obstacle keeps a group or a member from starting.
type Cause uint8

// The causes, with the fields of an Obstacle that they use besides Group.
const (
	// Unknown means that the group of the pod is not known yet.
	Unknown Cause = iota
	// NotPending means that the member needs no node.
	NotPending
	// NoPodGroup means that the group's object does not exist yet.
	NoPodGroup
	// TooFewMembers means that Have of Need members exist, or that members of a role or group lack, as Detail says.
	TooFewMembers
	// Uninvited means that the group waits to be planned.
	Uninvited
	// Represented means that Pod leads the group.
	Represented
	// WaitsForTurn means that others of the plan reserve before the member.
	WaitsForTurn
	// LeftOut means that the plan has no node for the member.
	LeftOut
	// PlanWaits means that the member has planned and others of the plan go before it.
	PlanWaits
	// PlanChanged means that the group changed while it was planned.
	PlanChanged
	// Starting means that the members of the plan are being bound.
	Starting
	// GivingBack means that members still hold Have assignments of a plan that ended.
	GivingBack
	// ReserveRefused means that Node turned Pod away when it reserved.
	ReserveRefused
	// NodeRefused means that the planned Node does not take its member, for the reason in Detail.
	NodeRefused
	// NotBound means that Pod could not be bound to Node.
	NotBound
	// Declined means that other plugins reject the members that are to plan, the last of them Pod; Detail is their
	// message.
	Declined
	// TimedOut means that Have of Need members had reserved when Timeout was over.
	TimedOut
	// GroupDeleted means that the group's object was deleted during a plan.
	GroupDeleted
	// LostMember means that a member was lost before the minimum, given in Detail, had reserved.
	LostMember
	// LostMembers means that too few members are left for the plan.
	LostMembers
	// NoMember means that Pod does not wait for the group any more.
	NoMember
	// Surplus means that the group, which has started, lacks other members than this one, given in Detail.
	Surplus
	// Evicted means that all members that have a node are being evicted.
	Evicted
	causes
)

// kinds are the messages of the causes without names and amounts.
var kinds = [causes]string{
	Unknown:        "waiting until the group of the pod is known",
	NotPending:     "not schedulable",
	NoPodGroup:     "waiting for a PodGroup",
	TooFewMembers:  "gang has fewer members than it needs",
	Uninvited:      "gang waits to be planned",
	Represented:    "gang is represented by another member",
	WaitsForTurn:   "gang: waiting for its turn in the plan that is being carried out",
	LeftOut:        "gang: no node for this member in the plan that is being carried out",
	PlanWaits:      "gang is planned, and other members go before this one",
	PlanChanged:    "gang changed while it was planned",
	Starting:       "gang is starting",
	GivingBack:     "gang is giving back assignments",
	ReserveRefused: "gang: a node turned a member away when it reserved its place",
	NodeRefused:    "gang: a planned node does not take its member",
	NotBound:       "gang: a member could not be bound",
	Declined:       "gang: the members that lead it cannot be scheduled",
	TimedOut:       "gang: the schedule timeout was over before all members had reserved their nodes",
	GroupDeleted:   "the PodGroup was deleted",
	LostMember:     "gang lost a member before all had reserved their nodes",
	LostMembers:    "gang lost the members that it needs",
	NoMember:       "the pod is no pending member of its gang any more",
	Surplus:        "gang lacks other members than this one",
	Evicted:        "gang is being evicted",
}

// Obstacle is a cause with its names and amounts.
type Obstacle struct {
	Cause      Cause
	Group      fmt.Stringer
	Pod, Node  string
	Have, Need int
	Timeout    time.Duration
	Detail     string
}

// Kind returns the message of the cause without names and amounts.
func (o Obstacle) Kind() string { return kinds[o.Cause] }

// String returns the message with names and amounts.
func (o Obstacle) String() string {
	switch o.Cause {
	case NoPodGroup:
		return fmt.Sprintf("waiting for PodGroup %s, which does not exist", o.Group)
	case TooFewMembers:
		if o.Detail != "" {
			return fmt.Sprintf("gang %s has %s", o.Group, o.Detail)
		}
		return fmt.Sprintf("gang %s has %d of the %s that it needs", o.Group, o.Have, plural.Of(o.Need, "member"))
	case Represented:
		return fmt.Sprintf("gang %s is represented by pod %s", o.Group, o.Pod)
	case GivingBack:
		return fmt.Sprintf("gang %s is giving back %s", o.Group, plural.Of(o.Have, "assignment"))
	case ReserveRefused:
		return fmt.Sprintf("node %s turned pod %s away when it reserved its place", o.Node, o.Pod)
	case NodeRefused:
		return fmt.Sprintf("planned node %s: %s", o.Node, o.Detail)
	case NotBound:
		return fmt.Sprintf("gang %s: pod %s could not be bound to node %s", o.Group, o.Pod, o.Node)
	case Declined:
		why := fmt.Sprintf("gang %s: pod %s cannot be scheduled", o.Group, o.Pod)
		if o.Detail != "" {
			why += ": " + o.Detail
		}
		return why
	case TimedOut:
		return fmt.Sprintf("gang %s: %d of %s had reserved a node when the schedule timeout of %s was over", o.Group, o.Have,
			plural.Of(o.Need, "member"), o.Timeout)
	case GroupDeleted:
		return fmt.Sprintf("PodGroup %s was deleted", o.Group)
	case LostMember:
		return fmt.Sprintf("gang %s lost a member before all %s had reserved their nodes", o.Group, o.Detail)
	case NoMember:
		return fmt.Sprintf("pod %s is no pending member of gang %s any more", o.Pod, o.Group)
	case Surplus:
		return fmt.Sprintf("gang %s has %s; what comes free is for others than this pod", o.Group, o.Detail)
	}
	// The other messages name at most the group.
	kind := o.Kind()
	if rest, ofGang := strings.CutPrefix(kind, "gang"); ofGang {
		return fmt.Sprintf("gang %s%s", o.Group, rest)
	}
	return kind
}
