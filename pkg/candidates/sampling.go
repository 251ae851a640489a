package candidates

// How many nodes that fit are enough for a scheduling cycle: kube-scheduler compares a sample in a large cluster and
// all nodes in a small one.
const (
	// Few is the number of nodes that are always looked for. A smaller cluster is never sampled.
	Few = 100

	startPercent  = 50
	nodesPerPoint = 125
	leastPercent  = 5
)

// Percentage is the share of the cluster's nodes that is enough: the one that is set, or, where that is 0, one that
// falls with the size of the cluster.
func Percentage(nodes, set int) int {
	if set > 0 {
		return set
	}
	return max(startPercent-nodes/nodesPerPoint, leastPercent)
}

// Enough is how many nodes that fit the scheduler compares. set is percentageOfNodesToScore, 0 for the scheduler's
// choice.
func Enough(nodes, set int) int {
	if nodes < Few {
		return nodes
	}
	return min(nodes, max(nodes*Percentage(nodes, set)/100, Few))
}
