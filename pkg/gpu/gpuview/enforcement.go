package gpuview

import (
	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/wellknown"
)

// hamiAgent names HAMi's device plugin in messages.
const hamiAgent = "HAMi's device plugin"

// Unenforced is the warning for a node that shares its GPUs without an agent that enforces shares; empty for any other.
func (g *Node) Unenforced() string {
	if g.empty.Mode != gpu.ModeShared || g.empty.Agent != gpu.AgentNone {
		return ""
	}
	return "label " + wellknown.GPUModeKey + ": shared, but no agent enforces shares here (no " + hamiRegisterKey +
		", no label " +
		wellknown.GPUAgentKey + "): shares are accounting only, and whole GPUs and shares never run here at once"
}

// Enforcement says what enforces the pod's share of a GPU on a node; it is empty for a pod that asks for none.
func (k *Keys) Enforcement(pod *v1.Pod, node *v1.Node) string {
	request, err := k.PodGPURequest(pod)
	if err != nil || !request.Shared {
		return ""
	}
	seen, _ := k.ReadGPUNode(node)
	switch agent := node.Labels[wellknown.GPUAgentKey]; {
	case request.ServedByHAMi(Assignment{Registered: seen.empty.Agent.Lists()}):
		return "enforced by " + hamiAgent
	case agent != "":
		return "enforced by " + agent + ", says the node's label " + wellknown.GPUAgentKey
	default:
		return "accounting only: nothing on the node holds the pod to its share"
	}
}
