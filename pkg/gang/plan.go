package gang

import (
	"fmt"
	"sort"
	"strings"
)

// Board is a trial copy of the cluster on which members are seated one after the other.
type Board interface {
	// Best returns the node on which the member is best seated now, given everything seated before it.
	Best(m Member) (node string, ok bool, err error)
	// Seat seats the member on the node.
	Seat(m Member, node string) error
}

// Result is what came of planning a group.
type Result struct {
	// Seats holds the node of each member that was seated.
	Seats map[UID]string
	// Need is the number of seats without which the group cannot start.
	Need int
	// Short lists the classes of which not every member found a seat.
	Short []Shortage
}

// Shortage is one class of members that do not all fit.
type Shortage struct {
	Class        string
	Wanted, Fits int
}

// Feasible reports whether the group can start with the seats found.
func (r *Result) Feasible() bool { return len(r.Seats) >= r.Need }

// Build seats members on the board, at least need of them and as many as fit. Members of one class are seated in a
// row, and the classes in the order given by hardness (the hardest first), because what fits almost nowhere must
// choose before what fits almost everywhere does; within one class the board chooses. Greedy, not optimal: with
// several classes a feasible assignment can be missed, never an infeasible one returned.
func Build(members []Member, need int, hardness func(class string) float64, board Board) (Result, error) {
	r := Result{Seats: make(map[UID]string, len(members)), Need: need}
	classes := map[string][]Member{}
	var order []string
	for _, m := range members {
		if classes[m.Class] == nil {
			order = append(order, m.Class)
		}
		classes[m.Class] = append(classes[m.Class], m)
	}
	sort.SliceStable(order, func(i, j int) bool { return hardness(order[i]) > hardness(order[j]) })
	for _, class := range order {
		fits := 0
		for _, m := range classes[class] {
			node, ok, err := board.Best(m)
			if err != nil {
				return r, err
			}
			if !ok {
				break
			}
			if err := board.Seat(m, node); err != nil {
				return r, err
			}
			r.Seats[m.UID] = node
			fits++
		}
		if fits < len(classes[class]) {
			r.Short = append(r.Short, Shortage{Class: class, Wanted: len(classes[class]), Fits: fits})
		}
	}
	return r, nil
}

// Reason is one cause that keeps members off nodes, with the number of nodes it concerns.
type Reason struct {
	Text  string
	Nodes int
}

// Explain says in one sentence why a group does not start. describe names what one member of a class asks for, within
// the kind of domain that all have to share, if any; reasons are what kept the members that found no seat off the nodes.
func Explain(id ID, t Turn, r Result, describe func(class string) string, within string, reasons []Reason) string {
	var b strings.Builder
	fmt.Fprintf(&b, "gang %s needs ", id)
	total := t.MinMember
	if within != "" {
		within = " within one " + within
	}
	if len(r.Short) == 1 && t.Need == len(t.Members) && r.Short[0].Wanted == len(t.Members) {
		fmt.Fprintf(&b, "%d × %s%s, fits %d", total, describe(r.Short[0].Class), within, len(r.Seats)+t.Held)
	} else {
		fmt.Fprintf(&b, "at least %d of %d members%s, fits %d", total, t.Held+len(t.Members), within, len(r.Seats)+t.Held)
		for i, s := range r.Short {
			sep := " ("
			if i > 0 {
				sep = ", "
			}
			fmt.Fprintf(&b, "%s%d of %d × %s", sep, s.Fits, s.Wanted, describe(s.Class))
		}
		if len(r.Short) > 0 {
			b.WriteString(")")
		}
	}
	if len(reasons) == 0 {
		return b.String()
	}
	sort.Slice(reasons, func(i, j int) bool {
		if reasons[i].Nodes != reasons[j].Nodes {
			return reasons[i].Nodes > reasons[j].Nodes
		}
		return reasons[i].Text < reasons[j].Text
	})
	for i, reason := range reasons {
		sep := ", "
		if i == 0 {
			sep = ": "
		}
		fmt.Fprintf(&b, "%s%d %s", sep, reason.Nodes, reason.Text)
	}
	return b.String()
}
