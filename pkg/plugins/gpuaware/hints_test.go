package gpuaware

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"berth.dev/berth/pkg/process"
	"berth.dev/berth/test/harness/await"
	"berth.dev/berth/test/harness/objects"
)

// newClaimHarness has a node with devices, one with a device plugin, and two classes; one of them stands in for a
// resource.
func newClaimHarness(t *testing.T, more ...runtime.Object) *harness {
	t.Helper()
	named := gpuClass()
	named.Name = "named"
	h := newHarness(t, gpuOnly(alone(defaultArgs())), append([]runtime.Object{
		plainClass("whole"), named, bareNode("n"), gpuSlice("n", 2, "Tesla T4", "16Gi"),
		objects.ClaimOf("c", objects.Request("a", "whole", 1)),
	}, more...)...)
	awaitClaim(t, h, 1)
	await.Until(t, "the class of the resource",
		func() bool { return h.DRA.DeviceClassResolver().GetDeviceClass("nvidia.com/gpu") != nil })
	return h
}

func TestAPodThatIsGoneWakesOthersIfItMayHaveHeldGPUs(t *testing.T) {
	t.Parallel()
	byClass := podObject("gone", strs{"deviceclass.resource.kubernetes.io/whole": "1"}, nil)
	for name, tc := range map[string]struct {
		gone *v1.Pod
		want fwk.QueueingHint
	}{
		"it had a claim and nothing else":      {claiming("gone"), fwk.Queue},
		"it asked for the resource of a class": {byClass, fwk.Queue},
		"it asked for GPUs of a device plugin": {podObject("gone", strs{"nvidia.com/gpu": "1"}, nil), fwk.Queue},
		"it asked for a resource of no class":  {podObject("gone", strs{"example.com/nic": "1"}, nil), fwk.QueueSkip},
		"it asked for nothing but CPU":         {podObject("gone", nil, nil), fwk.QueueSkip},
		"it asked for a class that is not there": {podObject("gone", strs{"deviceclass.resource.kubernetes.io/none": "1"},
			nil), fwk.QueueSkip},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newClaimHarness(t)
			hint := process.On(fwk.AssignedPod, fwk.Delete, h.plugin.afterPodDeleted).QueueingHintFn
			got, err := hint(h.logger, claiming("p"), tc.gone, nil)
			if err != nil || got != tc.want {
				t.Errorf("hint %v, error %v, want %v", got, err, tc.want)
			}
		})
	}
}

func TestChangesOfClaimsAndDevicesWakeThePodsThatTheyHelp(t *testing.T) {
	t.Parallel()
	free, taken := objects.ClaimOf("c", objects.Request("a", "whole", 1)), claimOf("other", "n", "gpu-0")
	given := free.DeepCopy()
	given.Status = taken.Status
	released := taken.DeepCopy()
	released.Status = resourcev1.ResourceClaimStatus{}
	foreign := free.DeepCopy()
	foreign.Namespace = "elsewhere"
	mine, byResource := claiming("p"), podObject("p", strs{"nvidia.com/gpu": "1"}, nil)
	byPlugin, broken := podObject("p", strs{"amd.com/gpu": "1"}, nil), claiming("p")
	broken.Annotations = strs{"berth.dev/gpu-memory-min": "much"}
	for name, tc := range map[string]struct {
		pod           *v1.Pod
		before, after any
		want          fwk.QueueingHint
	}{
		"another's claim gives devices back":               {mine, taken, released, fwk.Queue},
		"the same, for a pod by a resource":                {byResource, taken, released, fwk.Queue},
		"the same, for a pod of a device plugin":           {byPlugin, taken, released, fwk.QueueSkip},
		"the same, for a pod that cannot be read":          {broken, taken, released, fwk.QueueSkip},
		"another's claim with devices is deleted":          {mine, taken, nil, fwk.Queue},
		"another's claim without devices is deleted":       {mine, released, nil, fwk.QueueSkip},
		"another's claim gets devices":                     {mine, released, taken, fwk.QueueSkip},
		"the pod's own claim changes":                      {mine, free, given, fwk.Queue},
		"a claim of its name in another namespace changes": {mine, foreign, foreign, fwk.QueueSkip},
		"a slice changes": {mine, gpuSlice("n", 1, "", "1Gi"),
			gpuSlice("n", 2, "", "1Gi"), fwk.Queue},
		"a slice changes, for a pod of a device plugin": {byPlugin, gpuSlice("n", 1, "", "1Gi"), gpuSlice("n", 2, "", "1Gi"),
			fwk.QueueSkip},
		"a class appears": {mine, nil, plainClass("new"), fwk.Queue},
		"a class appears that stands in for the resource":    {byResource, nil, gpuClass(), fwk.Queue},
		"a class appears, for a pod without such a resource": {podObject("p", nil, nil), nil, gpuClass(), fwk.QueueSkip},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newClaimHarness(t)
			hint := process.On(fwk.ResourceClaim, fwk.Update, h.plugin.afterClaimChange).QueueingHintFn
			switch tc.after.(type) {
			case *resourcev1.ResourceSlice:
				hint = process.On(fwk.ResourceSlice, fwk.Update, h.plugin.afterSliceChange).QueueingHintFn
			case *resourcev1.DeviceClass:
				hint = process.On(fwk.DeviceClass, fwk.Update, h.plugin.afterClassChange).QueueingHintFn
			}
			got, err := hint(h.logger, tc.pod, tc.before, tc.after)
			if err != nil || got != tc.want {
				t.Errorf("hint %v, error %v, want %v", got, err, tc.want)
			}
		})
	}
}

func TestChangesOfNodesWithoutGPUsWakeOnlyPodsThatClaimsServeThere(t *testing.T) {
	t.Parallel()
	labeled := func(node *v1.Node) *v1.Node {
		node.Labels["example.com/a"] = "b"
		return node
	}
	grown := func(node *v1.Node) *v1.Node {
		node.Status.Allocatable["cpu"] = resource.MustParse("128")
		return node
	}
	mine, byPlugin := claiming("p"), podObject("p", strs{"amd.com/gpu": "1"}, nil)
	for name, tc := range map[string]struct {
		pod           *v1.Pod
		before, after *v1.Node
		want          fwk.QueueingHint
	}{
		"a node with devices gets a label": {mine, bareNode("n"), labeled(bareNode("n")), fwk.Queue},
		"the same, for a pod of a device plugin": {byPlugin, bareNode("n"), labeled(bareNode("n")),
			fwk.QueueSkip},
		"a node without devices gets a label": {mine, bareNode("other"), labeled(bareNode("other")),
			fwk.QueueSkip},
		"a node without GPUs grows, for a pod of a device plugin": {byPlugin, bareNode("other"), grown(bareNode("other")),
			fwk.QueueSkip},
		"a node without GPUs appears, for a pod of a device plugin": {byPlugin, nil, bareNode("other"), fwk.QueueSkip},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newClaimHarness(t)
			var before any
			if tc.before != nil {
				before = tc.before
			}
			hint := process.On(fwk.Node, fwk.Update, h.plugin.afterNodeChange).QueueingHintFn
			got, err := hint(h.logger, tc.pod, before, tc.after)
			if err != nil || got != tc.want {
				t.Errorf("hint %v, error %v, want %v", got, err, tc.want)
			}
		})
	}
}
