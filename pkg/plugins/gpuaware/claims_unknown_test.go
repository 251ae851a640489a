package gpuaware

import (
	"slices"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/test/harness/objects"
)

func goesTo(scores []fwk.NodePluginScores, node string) bool {
	return slices.ContainsFunc(scores, func(s fwk.NodePluginScores) bool { return s.Name == node })
}

// Nodes with the same GPUs differ in an attribute of their own that the claim asks for.
func TestAnnotationsHoldWhereAClaimAsksForAnAttribute(t *testing.T) {
	t.Parallel()
	marked := gpuSlice("b", 2, "Tesla T4", "16Gi")
	for i := range marked.Spec.Devices {
		marked.Spec.Devices[i].Attributes["rack"] = resourcev1.DeviceAttribute{StringValue: &marked.Name}
	}
	for models, fits := range map[string]bool{"Tesla-T4": true, "NVIDIA-A100-SXM4-80GB": false} {
		h := newHarness(t, gpuOnly(alone(defaultArgs())), plainClass("whole"), bareNode("a"),
			gpuSlice("a", 2, "Tesla T4", "16Gi"), bareNode("b"), marked.DeepCopy(),
			objects.ClaimOf("c", objects.Request("a", "whole", 1, objects.Matching(`"rack" in device.attributes["gpu.nvidia.com"]`))))
		awaitClaim(t, h, 2)
		pod := claiming("p", "c")
		pod.Annotations = strs{"berth.dev/gpu-models": models}
		_, scores, err := h.evaluate(t, h, pod)
		if got := goesTo(scores, "b"); got != fits {
			t.Errorf("the pod may go to the node: %t, want %t with models %s (%v)", got, fits, models, err)
		}
	}
}
