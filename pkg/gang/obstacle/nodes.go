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
	// Says is what is said of one of the nodes if Short is empty, Kind what that has in common with words that differ in
	// names and amounts alone.
	Says, Kind string
	Nodes      int
	// Fits is set for nodes on which a pod fits. Says then tells how few of them are in one domain, if that counts.
	Fits bool
	// Own is set if the pod's own constraints keep it off.
	Own bool
}

// OfNodes returns the cause that a reason is, of no node yet.
func OfNodes(r Reason) NodeCause { return NodeCause{Says: r.String(), Kind: r.Kind()} }

// Nodes are the causes that keep a pod off nodes, in the order in which they are told: those that concern no single
// node, those of the most nodes, and the nodes on which it fits. Each node counts once.
type Nodes []NodeCause

// mostCauses is how many causes are told. If there are more, those that differ in names and amounts alone are one.
const mostCauses = 8

// Count returns the causes with the numbers of their nodes.
func Count(nodes map[NodeCause]int) Nodes {
	if len(nodes) > mostCauses {
		alike := map[NodeCause]int{}
		for c, n := range nodes {
			if c.Short == "" && !c.Fits {
				c.Says = c.Kind
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
	others := OfNodes(Told("node(s) for other reasons"))
	for _, c := range causes[mostCauses:end] {
		others.Nodes += c.Nodes
	}
	return slices.Replace(causes, mostCauses, end, others)
}

// rulesOut reports whether what comes free on the nodes does not help.
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

// Kind is that of the cause of the most nodes that the pod's own constraints admit, if there are such nodes, or of one
// that concerns no single node. Causes that differ in amounts alone count together.
func (n Nodes) Kind() string {
	nodes := map[string]int{}
	admits := slices.ContainsFunc(n, func(c NodeCause) bool { return c.Nodes > 0 && !c.Fits && !c.rulesOut() })
	for i := range n {
		switch c := &n[i]; {
		case admits && c.rulesOut():
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
