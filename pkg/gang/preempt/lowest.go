package preempt

import (
	"math"

	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
)

// lowestPriorities keeps what priority the least important pod of each node has, for nodes that have not changed since.
// It is for one goroutine.
type lowestPriorities struct{ nodes []lowest }

// lowest is of a node in one state. Without pods, the priority is the highest there is.
type lowest struct {
	node       fwk.NodeInfo
	generation int64
	priority   int32
}

// Below reports whether a pod on one of the nodes may have a lower priority, one that is being bound included. That of
// a pod in a native group may be the group's.
func (l *lowestPriorities) Below(nodes []fwk.NodeInfo, priority int32) bool {
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
