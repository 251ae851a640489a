package eviction

import (
	"time"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/tree"
)

// Problem asks which pods to evict so that a gang can start. A single pod is a gang of one. All of it is plain data
// that Choose does not change. Sums of the amounts of one resource must not exceed an int64.
type Problem struct {
	// Priority is that of the gang. Only pods of lower priority are evicted.
	Priority int32
	// Need is the number of members that have to be placed, and Classes are the members that are not placed yet.
	Need    gang.Minimum
	Classes []Class
	Nodes   []Node
	// Domains are sets of nodes. One of them has to hold the whole gang: that with the cheapest eviction, and the first of
	// equal ones. Nil allows all nodes.
	Domains [][]int
	// Tree divides the gang into sets of members with a domain each, and takes the place of Need and Domains then; nil if
	// it is not divided. Its classes are those of the problem. What nodes have is known of the nodes.
	Tree    *tree.Problem
	Victims []Victim
	// Groups holds the groups of the victims. Members of a group that is not in it count as single pods.
	Groups map[gang.ID]Group
	// Budgets holds, for each PodDisruptionBudget, how many evictions it allows. It is never exceeded.
	Budgets []int
}

// Vector is an amount of each resource. The caller decides which resource has which index and in which unit it is
// counted. Entries that are missing at the end count as zero.
type Vector []int64

// Holds says whether there is as much of each resource as the demand asks for.
func (v Vector) Holds(demand Vector) bool {
	for r, amount := range demand {
		if amount > 0 && (r >= len(v) || v[r] < amount) {
			return false
		}
	}
	return true
}

// add adds an amount of each resource n times.
func (v Vector) add(o Vector, times int64) {
	for r, amount := range o {
		v[r] += amount * times
	}
}

// Class is a number of members that are interchangeable for placement.
type Class struct {
	Demand Vector
	Count  int
	Role   string
	// Fits reports, by node, whether members may be placed on the node at all: false rules the node out for a reason that
	// no eviction changes. Nil allows all nodes.
	Fits []bool
}

// Node is a node.
type Node struct {
	Name string
	// Free is what is left of the node by those pods that are not about to terminate anyway. It may be negative.
	Free Vector
}

// Victim is a bound pod that may be evicted.
type Victim struct {
	UID gang.UID
	// Node is an index into Problem.Nodes. It is negative if the pod is on a node that is not part of the problem.
	Node     int
	Priority int32
	Started  time.Time
	// Lost is the work that its eviction loses, in thousandths of GPU minutes. Protected ones go after the others of
	// their priority.
	Lost      int64
	Protected bool
	Requests  Vector
	// Group is the zero ID for a pod without a group.
	Group gang.ID
	// Role is the pod's role in its group.
	Role string
	// With names the members of its group that are evicted together only, this one among them; empty for a member that
	// may go without others.
	With string
	// Budgets are the indices, in Problem.Budgets, of the PodDisruptionBudgets that cover the pod.
	Budgets []int
}

// Group is what the choice of victims has to know about a group whose members may be evicted.
type Group struct {
	Minimum gang.Minimum
	// Settled is the number of members that count towards the minimum: those that are bound and those that have
	// succeeded. SettledByRole is the same for each role that has a minimum.
	Settled       int
	SettledByRole map[string]int
	// Bound is the number of members that are bound or being bound. All of them have to be among the victims before the
	// group can be evicted as a whole; members that have succeeded need not. BoundByRole counts those
	// that are bound.
	Bound       int
	BoundByRole map[string]int
	// AllOrNothing is set for a group that may be disrupted only as a whole, even if it has more members than its
	// minimum: a native group with disruptionMode all.
	AllOrNothing bool
	// Together is how many members are bound by Victim.With.
	Together map[string]int
}

// Bind counts a bound member with the role, which with names as Victim.With does; whole is set if these are all of the
// group.
func (g *Group) Bind(role, with string, whole bool) {
	g.Bound++
	if g.BoundByRole == nil {
		g.BoundByRole = map[string]int{}
	}
	g.BoundByRole[role]++
	g.AllOrNothing = g.AllOrNothing || whole
	if with == "" {
		return
	}
	if g.Together == nil {
		g.Together = map[string]int{}
	}
	g.Together[with]++
}

// rank is how important the victim is.
func (v *Victim) rank() rank { return rank{v.Priority, v.Protected} }

// loss is a number of members that a group loses, in all and by role, and the work that is lost with them.
type loss struct {
	total  int
	byRole map[string]int
	work   int64
}

func (l *loss) add(role string, members int) {
	l.total += members
	if l.byRole == nil {
		l.byRole = map[string]int{}
	}
	l.byRole[role] += members
}

// tolerates reports whether the group still has its minimum after the loss, and nothing holds nodes without use: groups
// within that lose members have what they need, or lose all.
func (g *Group) tolerates(l loss) bool {
	return l.total == 0 || !g.AllOrNothing && g.Minimum.Tolerates(g.Settled, l.byRole, g.BoundByRole,
		func(role string) int { return g.SettledByRole[role] })
}
