package candidates

// The size of kube-scheduler's own sample of nodes.
const (
	// Few is the least size of a sample. A smaller cluster is never sampled.
	Few = 100

	startPercent  = 50
	nodesPerPoint = 125
	leastPercent  = 5
)

// Percentage returns the share of the cluster's nodes that is enough: set, or, if that is 0, a share that falls with
// the size of the cluster.
func Percentage(nodes, set int) int {
	if set > 0 {
		return set
	}
	return max(startPercent-nodes/nodesPerPoint, leastPercent)
}

// Enough returns how many nodes that fit the scheduler compares. set is percentageOfNodesToScore, 0 for the default.
func Enough(nodes, set int) int {
	if nodes < Few {
		return nodes
	}
	return min(nodes, max(nodes*Percentage(nodes, set)/100, Few))
}
