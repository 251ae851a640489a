package gang

import (
	"cmp"
	"time"

	"berth.dev/berth/pkg/gang/obstacle"
	"berth.dev/berth/pkg/gang/tree"
)

// UID identifies one pod; a pod recreated under the same name has another one.
type UID string

// ID names a group.
type ID struct{ Namespace, Name string }

// String returns namespace/name.
func (id ID) String() string { return id.Namespace + "/" + id.Name }

// Compare orders names, so that nothing depends on the order in which a map is read.
func (id ID) Compare(other ID) int {
	return cmp.Or(cmp.Compare(id.Namespace, other.Namespace), cmp.Compare(id.Name, other.Name))
}

// Minimum is how many members a group needs before any of them starts.
type Minimum = tree.Minimum

// Spec is what a group asks for.
type Spec struct {
	// Minimum is how many members have to start together.
	Minimum Minimum
	// Created orders groups of the same priority; it must not change during the life of the group.
	Created time.Time
	// UID breaks ties of Created.
	UID UID
	// Timeout is how long members may keep assignments while the rest of the plan is being reserved.
	Timeout time.Duration
	// Placement is everything else that the group asks for, in any form. A change has the group tried again.
	Placement string
	// Generation changes with every edit of the specification.
	Generation int64
}

// Equal reports whether both ask for the same.
func (s *Spec) Equal(o *Spec) bool {
	return s.Minimum.Equal(o.Minimum) && s.Created.Equal(o.Created) && s.UID == o.UID && s.Timeout == o.Timeout &&
		s.Placement == o.Placement && s.Generation == o.Generation
}

// State is what the API server shows of a member.
type State uint8

// The states of a member. One never returns to an earlier rank, see rank.
const (
	// Gated members carry scheduling gates of their own and cannot be placed yet.
	Gated State = iota
	// Pending members can be placed.
	Pending
	// Bound members have a node.
	Bound
	// Succeeded members have finished well; they count towards the minimum and need no node.
	Succeeded
	// Failed members have finished badly; they count for nothing.
	Failed
	// Terminating members are being deleted; they count for nothing.
	Terminating
	states
)

// rank orders the states by time. An observation of a lower rank than is known is late, and ignored.
func (s State) rank() int {
	return [states]int{Gated: 0, Pending: 1, Bound: 2, Terminating: 3, Succeeded: 4, Failed: 4}[s]
}

// Ref is how a member is found again outside the ledger.
type Ref struct {
	UID             UID
	Namespace, Name string
}

// Member is one pod of a group as observed.
type Member struct {
	Ref
	Priority int32
	// Precedence is the place that the queue's classes give the member.
	Precedence Precedence
	Created    time.Time
	State      State
	// Node holds the name of the node of a bound member.
	Node string
	// Running is set for bound members whose containers run.
	Running bool
	// Class is equal for members that are interchangeable for placement.
	Class string
	// Role is the member's part in the group, empty if it has none.
	Role string
	// Ours is false for members that another scheduler places; they are counted, never planned.
	Ours bool
	// Minimum is the group's minimum by the member's own labels, 0 if these do not say it.
	Minimum int
}

// Effects are what the owner of a ledger has to do after a change. They are returned, so that the ledger is not locked
// while other locks are taken.
type Effects struct {
	// Activate lists members that were kept out of the queue and may now be tried.
	Activate []Ref
	// Allow lists members that wait for their siblings and may now be bound.
	Allow []Ref
	// Reject lists members that wait for their siblings, or write what siblings depend on, and have to give their
	// assignments back.
	Reject []Rejection
	// Started is set when a group has its minimum bound for the first time, and Waited is how long that took since it
	// had enough members.
	Started bool
	Waited  time.Duration
	// Landed is set when a group's last member on its way to a node is bound or has given its assignment back.
	Landed bool
	// Lost lists members of a started group that have lost their node, while the group has fewer than its minimum.
	Lost []Loss
}

// Rejection is a member that has to give its assignment back, and why.
type Rejection struct {
	Ref
	Reason obstacle.Reason
}

// Loss is a member that has lost its node, or could not be bound to it.
type Loss struct {
	Group  ID
	Member Ref
	Node   string
	// Role is the role that a replacement needs, empty for any.
	Role string
	// Starting is set if the group is in the middle of its start: it is bound in part until the member has a node again.
	Starting bool
}

// Empty reports whether there is nothing to do.
func (e *Effects) Empty() bool {
	return len(e.Activate) == 0 && len(e.Allow) == 0 && len(e.Reject) == 0 && len(e.Lost) == 0 && !e.Started && !e.Landed
}
