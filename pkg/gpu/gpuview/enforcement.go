package gpuview

import (
	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/wellknown"
)

// hamiAgent is how HAMi's device plugin is named to users.
const hamiAgent = "HAMi's device plugin"

// Unenforced says what is wrong with a node that shares its GPUs with nothing to enforce it; it is empty for any other.
func (g *Node) Unenforced() string {
	if g.empty.Mode != gpu.ModeShared || g.empty.Agent {
		return ""
	}
	return "label " + wellknown.GPUModeKey + ": shared, but no agent enforces shares here (no " + hamiRegisterKey +
		", no label " +
		wellknown.GPUAgentKey + "): shares are accounting only, and whole GPUs and shares never run here at once"
}

// Enforcement says who holds a pod to its share of a GPU on a node; it is empty for a pod that asks for none.
func (k *Keys) Enforcement(pod *v1.Pod, node *v1.Node) string {
	request, err := k.PodGPURequest(pod)
	if err != nil || !request.Shared {
		return ""
	}
	seen, _ := k.ReadGPUNode(node)
	switch agent := node.Labels[wellknown.GPUAgentKey]; {
	case request.ServedByHAMi(Assignment{Registered: seen.empty.Registered || seen.empty.Unlisted}):
		return "enforced by " + hamiAgent
	case agent != "":
		return "enforced by " + agent + ", says the node's label " + wellknown.GPUAgentKey
	default:
		return "accounting only: nothing on the node holds the pod to its share"
	}
}
