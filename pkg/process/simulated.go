package process

import (
	"iter"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// Simulated yields the other members of the pod's native group that the scheduler has placed in its simulation of the
// group, with their nodes. Only the NodeInfos of the cycle show them.
func Simulated(pod *v1.Pod, state fwk.CycleState, nodes []fwk.NodeInfo) iter.Seq2[*v1.Pod, fwk.NodeInfo] {
	return func(yield func(*v1.Pod, fwk.NodeInfo) bool) {
		if pod.Spec.SchedulingGroup == nil || !state.IsPodGroupSchedulingCycle() {
			return
		}
		for _, node := range nodes {
			for _, info := range node.GetPods() {
				if p := info.GetPod(); p.Spec.SchedulingGroup != nil && p.Namespace == pod.Namespace && p.UID != pod.UID &&
					!yield(p, node) {
					return
				}
			}
		}
	}
}
