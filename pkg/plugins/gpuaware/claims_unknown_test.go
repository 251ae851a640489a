package gpuaware

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/test/harness/objects"
)

// The search for a share of partitions that fit on no node together is exhaustive. It must not keep other pods waiting.
func TestAnInfeasibleClaimDoesNotStopOthers(t *testing.T) {
	t.Parallel()
	const gpus, ways = 8, 12
	devices, counters := objects.Partitions(gpus)
	slice := gpuSlice("n", 0, "", "1Gi")
	slice.Spec.Pool.ResourceSliceCount = 2
	sets := slice.DeepCopy()
	sets.Name, sets.UID, sets.Spec.Devices, sets.Spec.SharedCounters = "sets", "sets", nil, counters
	slice.Spec.Devices = nil
	for _, d := range devices {
		if strings.Contains(d.Name, "half") {
			continue
		}
		for way := range ways {
			cut := *d.DeepCopy()
			cut.Name = fmt.Sprintf("%s-way-%d", d.Name, way)
			slice.Spec.Devices = append(slice.Spec.Devices, cut)
		}
	}
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "whole"},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{
			{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.nvidia.com"`}},
		}}}
	h := newHarness(t, gpuOnly(alone(defaultArgs())), class, bareNode("n"), gpuNodeObject("plugin", 4, "Tesla-T4"), slice,
		sets, objects.ClaimOf("c", objects.Request("a", "whole", gpus+1)))
	awaitClaim(t, h, 1)
	picky := claiming("picky", "c")
	picky.Annotations = strs{"berth.dev/gpu-models": "Tesla-T4"}
	for pod, want := range map[*v1.Pod]bool{picky: false, claiming("easy", "c"): true} {
		_, scores, err := h.evaluate(t, h, pod)
		if got := goesTo(scores, "n"); got != want {
			t.Errorf("pod %s may go where it is not known which GPUs it would be given: %t, want %t (%v)", pod.Name, got, want,
				err)
		}
	}
}

func goesTo(scores []fwk.NodePluginScores, node string) bool {
	return slices.ContainsFunc(scores, func(s fwk.NodePluginScores) bool { return s.Name == node })
}

// The allocator would give devices by a condition that the demand is not found out by: nodes of one kind differ in it.
func TestAnnotationsHoldWhereTheDemandIsNotKnown(t *testing.T) {
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
		if _, known := h.plugin.cluster.claims.Demand(h.ctx, h.plugin.cluster.claims.Pod(pod)); known {
			t.Fatal("the demand is known: the case is void")
		}
		_, scores, err := h.evaluate(t, h, pod)
		if got := goesTo(scores, "b"); got != fits {
			t.Errorf("the pod may go to the node: %t, want %t with models %s (%v)", got, fits, models, err)
		}
	}
}
