package dryrun

import (
	fwk "k8s.io/kube-scheduler/framework"
)

// nodeCopies are the nodes on which a gang is tried, and copies of those that members were placed on.
type nodeCopies struct {
	Part
	// index holds the positions of nodes that were asked for, or of all if indexed is set.
	index   map[string]int
	indexed bool
	// lister tells which nodes are there.
	lister fwk.NodeInfoLister
	// copies holds the nodes that members have been placed on, as they are then.
	copies map[string]fwk.NodeInfo
	// mean is what the mean node has, once that was asked for.
	mean *meanNode
}

// position returns the index of a node. The names of the few that are placed on are noted when they are chosen; only
// pods that are to be removed can lie on any node.
func (c *nodeCopies) position(name string) (int, bool) {
	i, known := c.index[name]
	if !known && !c.indexed {
		c.indexed = true
		for i, n := range c.Nodes {
			c.index[n.Node().Name] = i
		}
		i, known = c.index[name]
	}
	return i, known
}

// rank returns the place of the node's domain in the order in which domains are filled.
func (c *nodeCopies) rank(i int) int {
	if c.ranks == nil {
		return 0
	}
	return c.ranks[i]
}

// node returns the node as it is with all members placed so far.
func (c *nodeCopies) node(i int) fwk.NodeInfo {
	if n := c.copies[c.Nodes[i].Node().Name]; n != nil {
		return n
	}
	return c.Nodes[i]
}

// edit returns a copy of the node that may be changed.
func (c *nodeCopies) edit(i int) fwk.NodeInfo {
	name := c.Nodes[i].Node().Name
	n := c.copies[name]
	if n == nil {
		n = c.Nodes[i].Snapshot()
		c.copies[name] = n
	}
	return n
}
