package coscheduling

import (
	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
)

// forgetNominations takes back what nominates siblings to the node: it is of an earlier plan, or of an earlier
// scheduler, and the pod would have to fit beside them.
func (p *Plugin) forgetNominations(id gang.ID, pod *v1.Pod, node string) {
	for _, info := range p.framework.NominatedPodsForNode(node) {
		if other := info.GetPod(); other.UID != pod.UID && p.shared.members.ID(other) == id {
			p.framework.DeleteNominatedPodIfExists(other)
		}
	}
}
