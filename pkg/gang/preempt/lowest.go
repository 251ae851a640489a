package preempt

import (
	"math"

	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
)

// lowestPriorities caches the lowest priority on each node, for one goroutine. Unlike the account of capacity, it knows
// assumed pods.
type lowestPriorities struct{ nodes []lowest }

// lowest is the lowest priority of the pods on a node at one generation, the highest possible without pods.
type lowest struct {
	node       fwk.NodeInfo
	generation int64
	priority   int32
}

// below reports whether a pod on one of the nodes may have a lower priority. A pod in a native group may have the
// priority of the group.
func (l *lowestPriorities) below(nodes []fwk.NodeInfo, priority int32) bool {
	if len(l.nodes) != len(nodes) {
		l.nodes = make([]lowest, len(nodes))
	}
	for i, node := range nodes {
		known := &l.nodes[i]
		if known.node != node || known.generation != node.GetGeneration() {
			*known = lowestOf(node)
		}
		if known.priority < priority {
			return true
		}
	}
	return false
}

func lowestOf(node fwk.NodeInfo) lowest {
	l := lowest{node, node.GetGeneration(), math.MaxInt32}
	for _, info := range node.GetPods() {
		pod := info.GetPod()
		if pod.Spec.SchedulingGroup != nil {
			l.priority = math.MinInt32
		}
		l.priority = min(l.priority, corev1helpers.PodPriority(pod))
	}
	return l
}
