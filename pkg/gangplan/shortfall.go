package gangplan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/plural"
)

// Shortfall is why a group does not fit: how many of its members find a node, and what keeps the others off the nodes.
type Shortfall struct {
	Group gang.ID
	// Of is the whole minimum, Members how many can be placed or are, Fits how many find a node or have one.
	Of            gang.Minimum
	Members, Fits int
	// Alike is set if all members ask for the same and all are needed: the one entry of Classes is then the whole group.
	Alike bool
	// Classes are those with members that find no node; those that ask for the same are one.
	Classes []ClassShortfall
	// Within is the kind of domain that all have to share, if any.
	Within string
	// Segments says what parts of the group share, if there are such parts, Lacking which part finds no place.
	Segments, Lacking string
	// Nodes are the causes that keep the first of the classes off nodes.
	Nodes []NodeCause
}

// ClassShortfall is how many members of a class find a node; each asks for Asks.
type ClassShortfall struct {
	Asks         string
	Wanted, Fits int
}

// NewShortfall returns why the result is not enough for the turn. Asks names what one member of a class asks for.
func NewShortfall(id gang.ID, t gang.Turn, r Result, asks func(class string) string, within string,
	nodes []NodeCause) *Shortfall {
	members := len(t.Members)
	s := &Shortfall{Group: id, Of: t.Of, Members: t.Held + members, Fits: t.Held + len(r.Assignments), Within: within,
		Segments: r.Segments, Lacking: r.Lacking, Nodes: nodes}
	for _, c := range r.Short {
		s.add(ClassShortfall{Asks: asks(c.Class), Wanted: c.Wanted, Fits: c.Fits})
	}
	s.Alike = len(s.Classes) == 1 && t.Need.Total == members && s.Classes[0].Wanted == members
	return s
}

// add counts classes that ask for the same together: what else tells them apart, such as a label, is not said.
func (s *Shortfall) add(c ClassShortfall) {
	for i := range s.Classes {
		if s.Classes[i].Asks == c.Asks {
			s.Classes[i].Wanted += c.Wanted
			s.Classes[i].Fits += c.Fits
			return
		}
	}
	s.Classes = append(s.Classes, c)
}

// Kind names the cause that keeps members off the most nodes, or one that concerns no single node. Causes that differ
// in amounts alone count together.
func (s *Shortfall) Kind() string {
	nodes := map[string]int{}
	for i := range s.Nodes {
		switch c := &s.Nodes[i]; {
		case c.Nodes == 0:
			nodes[c.kind()] = math.MaxInt32
		case c.Fits && c.Says == "":
			nodes[c.kind()] = 0
		default:
			nodes[c.kind()] += c.Nodes
		}
	}
	most := ""
	for kind, n := range nodes {
		if most == "" || n > nodes[most] || n == nodes[most] && kind < most {
			most = kind
		}
	}
	if most == "" {
		return "gang does not fit"
	}
	return "gang does not fit: " + most
}

// String says what the group needs, how much of it fits, and what keeps the rest off the nodes, the cause of the most
// nodes first and the nodes on which a member fits last.
func (s *Shortfall) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "gang %s ", s.Group)
	within := ""
	if s.Within != "" {
		within = " within one " + s.Within
	}
	if s.Segments != "" {
		within += " in " + s.Segments
	}
	switch foreign := s.Of.Total - s.Members; {
	case s.Alike:
		fmt.Fprintf(&b, "needs %s × %s%s, fits %d", s.Of, s.Classes[0].Asks, within, s.Fits)
	case foreign > 0:
		fmt.Fprintf(&b, "needs %s %s%s, %d of them placed by another scheduler, fits %d", s.Of,
			plural.Noun(s.Of.Total, "member"), within, foreign, s.Fits)
	case s.Of.Total == s.Members:
		fmt.Fprintf(&b, "needs all %s members%s, fits %d", s.Of, within, s.Fits)
	default:
		fmt.Fprintf(&b, "needs at least %s of %s%s, fits %d", s.Of, plural.Of(s.Members, "member"), within, s.Fits)
	}
	if !s.Alike {
		for i, c := range s.Classes {
			sep := " ("
			if i > 0 {
				sep = ", "
			}
			fmt.Fprintf(&b, "%s%d of %d × %s", sep, c.Fits, c.Wanted, c.Asks)
		}
		if len(s.Classes) > 0 {
			b.WriteString(")")
		}
	}
	type clause struct {
		order, nodes int
		words        string
	}
	clauses := make([]clause, len(s.Nodes))
	for i := range s.Nodes {
		c := &s.Nodes[i]
		clauses[i] = clause{-c.Nodes, c.Nodes, c.clause()}
		switch {
		case c.Nodes == 0:
			clauses[i].order = math.MinInt
		case c.Fits:
			clauses[i].order = 0
		}
	}
	slices.SortFunc(clauses, func(a, b clause) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.words, b.words))
	})
	if more := s.Of.Total - s.Fits; more > 0 {
		fmt.Fprintf(&b, "; %d more %s needed", more, plural.Choose(more, "is", "are"))
	}
	if s.Lacking != "" {
		fmt.Fprintf(&b, "; %s", s.Lacking)
	}
	sep := " ("
	for _, c := range clauses {
		b.WriteString(sep)
		if c.nodes > 0 {
			fmt.Fprintf(&b, "%d ", c.nodes)
		}
		b.WriteString(c.words)
		sep = ", "
	}
	if len(clauses) > 0 {
		b.WriteString(")")
	}
	return b.String()
}

// NodeCause is one cause that keeps members off nodes, with the number of nodes it concerns; 0 if it concerns no single
// node. The causes of a class count each node once.
type NodeCause struct {
	// Short is the resource that the nodes are short of, Most how much of it one of them has at most if no pod runs there;
	// empty if that is enough. If Short is empty, Says is what a plugin says of one of the nodes and Kind what that has in
	// common with words that differ in amounts alone.
	Short, Most, Says, Kind string
	Nodes                   int
	// Fits is set for nodes on which a member fits. Says then tells how few of them are in one domain, if that counts.
	Fits bool
}

// kind is the clause without amounts.
func (c *NodeCause) kind() string {
	switch {
	case c.Fits && c.Says != "":
		return "too few nodes that fit in one domain"
	case c.Fits:
		return "too few nodes that fit"
	case c.Most != "" && c.Most != "0":
		return "nodes with too little " + c.Short
	}
	alike := NodeCause{Short: c.Short, Most: c.Most, Says: c.Kind, Nodes: min(c.Nodes*2, 2)}
	return alike.clause()
}

// clause follows the number of nodes, or stands alone if the cause concerns none in particular. Plugins speak of
// "node(s)", because they do not know how many there are.
func (c *NodeCause) clause() string {
	noun := plural.Choose(c.Nodes, "node", "nodes")
	says, ofNodes := strings.CutPrefix(c.Says, "node(s) ")
	switch {
	case c.Fits:
		return noun + plural.Choose(c.Nodes, " that fits", " that fit") + c.Says
	case c.Most == "0":
		return noun + " without " + c.Short
	case c.Most != "":
		return noun + " with at most " + c.Most + " " + c.Short
	case c.Short != "":
		return noun + " with too little free " + c.Short
	case c.Nodes == 0:
		return says
	case !ofNodes:
		return noun + ": " + c.Says
	}
	if was, plural := strings.CutPrefix(says, "were "); plural && c.Nodes == 1 {
		says = "was " + was
	}
	return noun + " " + says
}
