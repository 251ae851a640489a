package plan

import (
	fwk "k8s.io/kube-scheduler/framework"
)

// nodeCopies are the nodes on which a gang is tried, and copies of those that are not as they are in the cluster.
type nodeCopies struct {
	Part
	// lister tells which nodes are there.
	lister fwk.NodeInfoLister
	// copies holds the nodes from which pods were removed or on which members were placed, as they are then.
	copies map[string]fwk.NodeInfo
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
func (c *nodeCopies) edit(of fwk.NodeInfo) fwk.NodeInfo {
	name := of.Node().Name
	if c.copies[name] == nil {
		c.copies[name] = of.Snapshot()
	}
	return c.copies[name]
}
