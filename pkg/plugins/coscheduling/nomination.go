package coscheduling

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gang"
)

// forgetNominations takes back what nominates siblings to the node: it is of an earlier plan, or of an earlier scheduler, and
// the pod would have to fit beside them.
func (p *Plugin) forgetNominations(id gang.ID, pod *v1.Pod, node string) {
	for _, info := range p.framework.NominatedPodsForNode(node) {
		if other := info.GetPod(); other.UID != pod.UID && p.shared.members.id(other) == id {
			p.framework.DeleteNominatedPodIfExists(other)
		}
	}
}

// clearNominations takes back the nominations of the members of a gang that does not fit. They are left by an earlier scheduler,
// or by this one: where it writes to which node a pod is on its way, the pod may be refused before the write is seen, and then
// nothing takes it back. Others of the same or of lower priority would be kept off a node that the gang does not use.
func (s *statusWriter) clearNominations(ctx context.Context, id gang.ID) error {
	for _, ref := range s.ledger.Members(id) {
		pod := s.pods.pod(ref)
		if pod == nil || pod.Spec.NodeName != "" || pod.Status.NominatedNodeName == "" {
			continue
		}
		if err := s.patchStatus(ctx, pod, map[string]any{"nominatedNodeName": nil}); err != nil {
			return err
		}
	}
	return nil
}
