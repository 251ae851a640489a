package obstacle

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"berth.dev/berth/pkg/plural"
)

// NodeCause is one cause that keeps a pod off nodes, with the number of nodes; 0 if it concerns no single node.
type NodeCause struct {
	// Short is the resource that the nodes are short of, Most how much of it one of them has at most if no pod runs there;
	// empty if that is enough.
	Short, Most string
	// Message is about one of the nodes, if Short is empty. Kind is the same for messages that differ in names and
	// amounts only.
	Message, Kind string
	Nodes         int
	// Fits is set for nodes on which a pod fits. Message then says how many of them are in one domain, if pods share one.
	Fits bool
	// Own is set if the pod's own constraints keep it off.
	Own bool
}

// OfNodes returns the reason as a cause without a number of nodes.
func OfNodes(r Reason) NodeCause { return NodeCause{Message: r.String(), Kind: r.Kind()} }

// Nodes are the causes that keep a pod off nodes, in the order of the message: causes without nodes, causes by number
// of nodes, and the nodes on which the pod fits. Each node counts once.
type Nodes []NodeCause

// mostCauses bounds the causes in a message. If there are more, those that differ in names and amounts only are merged.
const mostCauses = 8

// Count returns the causes with the numbers of their nodes.
func Count(nodes map[NodeCause]int) Nodes {
	if len(nodes) > mostCauses {
		alike := map[NodeCause]int{}
		for c, n := range nodes {
			if c.Short == "" && !c.Fits {
				c.Message = c.Kind
			}
			alike[c] += n
		}
		nodes = alike
	}
	causes := make(Nodes, 0, len(nodes))
	for c, n := range nodes {
		c.Nodes = n
		causes = append(causes, c)
	}
	slices.SortFunc(causes, func(a, b NodeCause) int {
		return cmp.Or(cmp.Compare(a.order(), b.order()), cmp.Compare(a.clause(), b.clause()))
	})
	end := len(causes)
	if end > 0 && causes[end-1].Fits {
		end--
	}
	if end <= mostCauses {
		return causes
	}
	others := OfNodes(Text("node(s) for other reasons"))
	for _, c := range causes[mostCauses:end] {
		others.Nodes += c.Nodes
	}
	return slices.Replace(causes, mostCauses, end, others)
}

// rulesOut reports whether capacity that becomes free on the nodes does not help.
func (c *NodeCause) rulesOut() bool { return c.Own || c.Most != "" }

func (c *NodeCause) order() int {
	switch {
	case c.Nodes == 0:
		return math.MinInt
	case c.Fits:
		return 0
	}
	return -c.Nodes
}

// Kind is that of the cause with the most nodes, among the nodes that the pod's own constraints admit, if there are
// any. A cause without nodes comes first. Causes that differ in amounts only count together.
func (n Nodes) Kind() string {
	nodes := map[string]int{}
	admits := slices.ContainsFunc(n, func(c NodeCause) bool { return c.Nodes > 0 && !c.Fits && !c.rulesOut() })
	for i := range n {
		switch c := &n[i]; {
		case admits && c.rulesOut():
		case c.Nodes == 0:
			nodes[c.kind()] = math.MaxInt32
		case c.Fits && c.Message == "":
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
	return most
}

// String is one clause for each cause.
func (n Nodes) String() string {
	clauses := make([]string, len(n))
	for i := range n {
		if clauses[i] = n[i].clause(); n[i].Nodes > 0 {
			clauses[i] = fmt.Sprintf("%d %s", n[i].Nodes, clauses[i])
		}
	}
	return strings.Join(clauses, ", ")
}

// kind is the clause without amounts.
func (c *NodeCause) kind() string {
	switch {
	case c.Fits && c.Message != "":
		return "too few nodes that fit in one domain"
	case c.Fits:
		return "too few nodes that fit"
	case c.Most != "" && c.Most != "0":
		return "nodes with too little " + c.Short
	}
	alike := NodeCause{Short: c.Short, Most: c.Most, Message: c.Kind, Nodes: min(c.Nodes*2, 2)}
	return alike.clause()
}

// clause follows the number of nodes, or stands alone if the cause has none. Messages of plugins say "node(s)", because
// they do not know the number.
func (c *NodeCause) clause() string {
	noun := plural.Choose(c.Nodes, "node", "nodes")
	says, ofNodes := strings.CutPrefix(c.Message, "node(s) ")
	switch {
	case c.Fits:
		return noun + plural.Choose(c.Nodes, " that fits", " that fit") + c.Message
	case c.Most == "0":
		return noun + " without " + c.Short
	case c.Most != "":
		return noun + " with at most " + c.Most + " " + c.Short
	case c.Short != "":
		return noun + " with too little free " + c.Short
	case c.Nodes == 0:
		return says
	case !ofNodes:
		return noun + ": " + c.Message
	}
	if was, plural := strings.CutPrefix(says, "were "); plural && c.Nodes == 1 {
		says = "was " + was
	}
	return noun + " " + says
}
