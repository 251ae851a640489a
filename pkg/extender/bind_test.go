package extender

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/gpuview"
	"berth.dev/berth/test/harness/await"
)

// bindingOf is what the scheduler sends.
func bindingOf(pod *v1.Pod, node string) *v1.Binding {
	return &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     v1.ObjectReference{Kind: "Node", Name: node},
	}
}

// passes says whether one node passes.
func passes(t *testing.T, client fwk.Extender, pod *v1.Pod, node *v1.Node) (bool, string) {
	t.Helper()
	passed, failed, unresolvable, err := client.Filter(pod, infos(node))
	if err != nil {
		t.Fatal(err)
	}
	return len(passed) == 1, failed[node.Name] + unresolvable[node.Name]
}

func TestSharesAreRefusedByAnExtenderThatDoesNotBind(t *testing.T) {
	t.Parallel()
	node := shared("shared", 2)
	h := newHarness(t, plain, false, node, gpuNode("whole", 2, nil))
	client := caller(t, h.serve(t, Serving{}), nil)
	for name, pod := range map[string]*v1.Pod{
		"a share": share("s", "500"), "a whole GPU": newPod("w", "", 1, map[string]string{"berth.dev/gpu-sharing": "shared"}),
	} {
		if ok, reason := passes(t, client, pod, node); ok || reason != reasonUnassigned {
			t.Errorf("%s on a node that shares: passes %v, reason %q", name, ok, reason)
		}
	}
	if ok, reason := passes(t, client, newPod("c", "", 0, nil), node); !ok {
		t.Errorf("a pod without GPUs: %s", reason)
	}
	if ok, reason := passes(t, client, newPod("w", "", 1, nil), gpuNode("whole", 2, nil)); !ok {
		t.Errorf("a whole GPU elsewhere: %s", reason)
	}
}

// Ten shares of 0.4 are bound at once to a node with two GPUs: four have room, and no GPU is promised beyond what it
// has.
func TestBindAssignsDevicesAndNeverPromisesAShareTwice(t *testing.T) {
	t.Parallel()
	node := shared("shared", 2)
	h := newHarness(t, plain, true, node)
	client := caller(t, h.serve(t, Serving{}), nil)
	pods := make([]*v1.Pod, 10)
	for i := range pods {
		pods[i] = share(fmt.Sprintf("s%d", i), "400")
		h.add(t, pods[i])
		if ok, reason := passes(t, client, pods[i], node); !ok {
			t.Fatal(reason)
		}
	}
	failures := make(chan error, len(pods))
	for _, pod := range pods {
		go func() { failures <- client.Bind(bindingOf(pod, "shared")) }()
	}
	refused := 0
	for range pods {
		if err := <-failures; err != nil {
			refused++
			if !strings.Contains(err.Error(), "GPU") {
				t.Errorf("refused: %v", err)
			}
		}
	}
	if refused != 6 {
		t.Errorf("%d of 10 shares were refused, want 6", refused)
	}
	perDevice := map[string]int{}
	for _, pod := range pods {
		stored := h.stored(t, pod.Name)
		assigned, known := gpuview.Granted(stored)
		if known != (stored.Spec.NodeName != "") {
			t.Errorf("pod %s on node %q has the assignment %+v", pod.Name, stored.Spec.NodeName, assigned)
		}
		if known {
			perDevice[stored.Annotations["alibabacloud.com/gpu-index"]]++
		}
	}
	if len(perDevice) != 2 || perDevice["0"] != 2 || perDevice["1"] != 2 {
		t.Errorf("shares by device: %v, want two each", perDevice)
	}
	await.Until(t, "the refused pods to be off the node", func() bool {
		n, err := h.sched.Cache.PodCount()
		return err == nil && n == 4
	})
	if ok, _ := passes(t, client, share("late", "400"), node); ok {
		t.Error("a fifth share passes")
	}
}

// The replica that led before has bound the pod, and told it its device.
func TestAPodThatAnotherReplicaHasBoundKeepsItsDevice(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		boundTo string
		refused bool
	}{
		"to the node that the scheduler asks for": {boundTo: "shared"},
		"to another node":                         {boundTo: "other", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := share("s", "400")
			h := newHarness(t, plain, true, shared("shared", 2), shared("other", 2), pod)
			assumed, state, err := h.reserve(t.Context(), h.stored(t, "s"), "shared")
			if err != nil {
				t.Fatal(err)
			}
			told := []byte(`{"metadata":{"annotations":{"alibabacloud.com/gpu-index":"1"}}}`)
			if _, err := h.client.CoreV1().Pods("default").Patch(t.Context(), "s", types.MergePatchType, told,
				metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := h.client.CoreV1().Pods("default").Bind(t.Context(), bindingOf(pod, test.boundTo),
				metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := h.finish(t.Context(), state, assumed); (err != nil) != test.refused {
				t.Errorf("refused: %v, want %t", err, test.refused)
			}
			if device := h.stored(t, "s").Annotations["alibabacloud.com/gpu-index"]; device != "1" {
				t.Errorf("the pod was told device %q", device)
			}
			await.Until(t, "the pod to be counted where it is", func() bool {
				pods := map[string]int{}
				for name, node := range h.sched.Cache.Dump().Nodes {
					pods[name] = len(node.Pods)
				}
				return pods[test.boundTo] == 1 && pods["shared"]+pods["other"] == 1
			})
		})
	}
}

func TestBindRefusesWhatIsNotAsTheSchedulerThinks(t *testing.T) {
	t.Parallel()
	node := gpuNode("n", 2, nil)
	pod := newPod("p", "", 2, nil)
	h := newHarness(t, plain, true, node, gpuNode("m", 2, nil), pod)
	client := caller(t, h.serve(t, Serving{}), nil)
	other := pod.DeepCopy()
	other.UID = "another"
	if err := client.Bind(bindingOf(other, "n")); err == nil || !strings.Contains(err.Error(), "it was replaced") {
		t.Errorf("a pod of the same name: error %v", err)
	}
	if err := client.Bind(bindingOf(newPod("gone", "", 1, nil), "n")); err == nil ||
		!strings.Contains(err.Error(), "not found") {
		t.Errorf("a pod that is gone: error %v", err)
	}
	if err := client.Bind(bindingOf(pod, "nowhere")); err == nil || !strings.Contains(err.Error(), "finding the node") {
		t.Errorf("a node that is not there: error %v", err)
	}
	for range 2 { // the second time is a request whose first answer was lost
		if err := client.Bind(bindingOf(pod, "n")); err != nil {
			t.Fatal(err)
		}
		await.Until(t, "the pod on its node", func() bool {
			p, err := h.pods.Pods("default").Get("p")
			return err == nil && p.Spec.NodeName == "n"
		})
	}
	if err := client.Bind(bindingOf(pod, "m")); err == nil || !strings.Contains(err.Error(), "it is bound to node n") {
		t.Errorf("another node: error %v", err)
	}
	late := newPod("late", "", 1, nil)
	h.add(t, late)
	if err := client.Bind(bindingOf(late, "n")); err == nil || !strings.Contains(err.Error(), "GPU") {
		t.Errorf("a node that is full by now: error %v", err)
	}
}

// The scheduler allocates the node's only device to a pod before it asks for the binding.
func TestBindAcceptsDevicesThatTheSchedulerHasAllocated(t *testing.T) {
	t.Parallel()
	const driver = "gpu.amd.com"
	node := gpuNode("n", 0, nil)
	node.Labels, node.Status.Allocatable["nvidia.com/gpu"] = nil, resource.MustParse("0")
	asking := func(name string) *v1.Pod {
		pod := newPod(name, "", 0, nil)
		pod.Spec.Containers[0].Resources.Requests["amd.com/gpu"] = resource.MustParse("1")
		return pod
	}
	first, second := asking("first"), asking("second")
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: driver, UID: driver},
		Spec: resourcev1.DeviceClassSpec{
			ExtendedResourceName: ptr.To("amd.com/gpu"),
			Selectors:            []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.amd.com"`}}},
		}}
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "slice"},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: ptr.To("n"), Pool: resourcev1.ResourcePool{Name: "n", Generation: 1,
				ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{Name: "gpu-0"}},
		}}
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: "of-first", Namespace: "default", UID: "claim",
			Annotations: map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "first", UID: first.UID,
				Controller: ptr.To(true)}},
		},
		Status: resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{
			Devices: resourcev1.DeviceAllocationResult{
				Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: driver, Pool: "n", Device: "gpu-0"}},
			}}},
	}
	h := newHarness(t, plain, true, node, class, slice, claim, first, second)
	client := caller(t, h.serve(t, Serving{}), nil)
	await.Until(t, "the device to be in use", func() bool {
		ok, _ := passes(t, client, second, node)
		return !ok
	})
	if err := client.Bind(bindingOf(second, "n")); err == nil || !strings.Contains(err.Error(), "GPU") {
		t.Errorf("a pod without the device: error %v", err)
	}
	if err := client.Bind(bindingOf(first, "n")); err != nil {
		t.Error(err)
	}
}

// A replica that takes over knows what its predecessor has assigned.
func TestAnotherExtenderKnowsWhatWasAssigned(t *testing.T) {
	t.Parallel()
	node := shared("shared", 1)
	first := newHarness(t, plain, true, node)
	pod := share("s", "700")
	first.add(t, pod)
	if err := caller(t, first.serve(t, Serving{}), nil).Bind(bindingOf(pod, "shared")); err != nil {
		t.Fatal(err)
	}
	second := newHarness(t, plain, true, node, first.stored(t, "s"))
	client := caller(t, second.serve(t, Serving{}), nil)
	if ok, _ := passes(t, client, share("large", "400"), node); ok {
		t.Error("a share that no longer fits passes")
	}
	if ok, reason := passes(t, client, share("small", "300"), node); !ok {
		t.Errorf("a share that fits: %s", reason)
	}
}

func TestProfilesAreReducedToWhatCanBeServed(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
	t.Run("a profile without the plugins", func(t *testing.T) {
		t.Parallel()
		c := load(t, head+"  - schedulerName: x\n")
		if _, err := reduce(c.Component, "x"); err == nil ||
			!strings.Contains(err.Error(), "enables neither GPUAware nor CostOptimized") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("a shipped configuration", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, shipped(t), true, gpuNode("n", 1, nil))
		list := h.framework.ListPlugins()
		for point, set := range map[string]int{"filter": len(list.Filter.Enabled), "score": len(list.Score.Enabled)} {
			if set != 2 {
				t.Errorf("%d plugins at %s, want 2: %v", set, point, list)
			}
		}
		if h.topScore != 4000 {
			t.Errorf("highest score %d, want 100 times the weights 20 and 20", h.topScore)
		}
	})
	t.Run("scores alone", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, head+`
  - schedulerName: x
    plugins:
      score: {enabled: [{name: CostOptimized, weight: 3}]}
`, false, gpuNode("n", 1, nil))
		if list := h.framework.ListPlugins(); len(list.Filter.Enabled) != 0 || len(list.Score.Enabled) != 1 ||
			h.topScore != 300 {
			t.Errorf("plugins %v, highest score %d", list, h.topScore)
		}
	})
	t.Run("args that are wrong", func(t *testing.T) {
		t.Parallel()
		c := load(t, plain+"    pluginConfig: [{name: GPUAware, args: {candidates: -1}}]\n")
		_, err := New(t.Context(), Options{Component: c.Component, Profile: "default-scheduler",
			API: newHarness(t, plain, false).api.RESTConfig()})
		if err == nil || !strings.Contains(err.Error(), "default-scheduler") || !strings.Contains(err.Error(), "candidates") {
			t.Errorf("error %v", err)
		}
	})
}
