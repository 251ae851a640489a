package plugins_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/objects"
)

// claimForm is one way to ask for GPUs by dynamic resource allocation. Its nodes are its own, and so is its class,
// which selects its devices alone.
type claimForm struct {
	// nodes are the devices of each node, by its last letter.
	nodes map[string][]resourcev1.Device
	// counters are the sets of counters of each node.
	counters []resourcev1.CounterSet
	driver   string
	// resource is the extended resource for which the class stands in, empty for none.
	resource string
	// before are pods that run when the pod comes: what they ask for, by node.
	before map[string]claimAsk
	pod    claimAsk
	// node is where the pod has to go, and devices are what is allocated to it there.
	node    string
	devices []string
}

// claimAsk is what a pod asks for: a claim, or a number of a resource.
type claimAsk struct {
	claim    *resourcev1.DeviceClaim
	template bool
	resource string
	count    string
}

// oneRequest is a claim of one request.
func oneRequest(change func(*resourcev1.ExactDeviceRequest)) claimAsk {
	r := &resourcev1.ExactDeviceRequest{AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}
	if change != nil {
		change(r)
	}
	return claimAsk{claim: &resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpus", Exactly: r}}}}
}

// rooted puts pairs of GPUs behind one PCIe root.
func rooted(devices []resourcev1.Device) []resourcev1.Device {
	for i := range devices {
		devices[i].Attributes["root"] = resourcev1.DeviceAttribute{StringValue: ptr.To(fmt.Sprint("root-", i/2))}
	}
	return devices
}

func claimForms() map[string]claimForm {
	parts, counters := objects.Partitions(2)
	two, four := objects.GPUs(2, nil), objects.GPUs(4, nil)
	attribute := func(name string) string { return `device.attributes["gpu.nvidia.com"].` + name }
	pair := oneRequest(func(r *resourcev1.ExactDeviceRequest) { r.Count = 2 })
	paired := claimAsk{claim: &resourcev1.DeviceClaim{
		Requests: []resourcev1.DeviceRequest{
			{Name: "one", Exactly: &resourcev1.ExactDeviceRequest{AllocationMode: resourcev1.DeviceAllocationModeExactCount,
				Count: 1}},
			{Name: "other", Exactly: &resourcev1.ExactDeviceRequest{AllocationMode: resourcev1.DeviceAllocationModeExactCount,
				Count: 1}},
		},
		Constraints: []resourcev1.DeviceConstraint{
			{MatchAttribute: ptr.To(resourcev1.FullyQualifiedName("gpu.nvidia.com/root"))}},
	}}
	either := claimAsk{claim: &resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpus",
		FirstAvailable: []resourcev1.DeviceSubRequest{
			{Name: "huge", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 5},
			{Name: "small", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1},
		}}}}}
	fromTemplate := oneRequest(nil)
	fromTemplate.template = true
	broken := objects.GPUs(2, nil)
	broken[1].Taints = []resourcev1.DeviceTaint{{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
	tolerating := oneRequest(func(r *resourcev1.ExactDeviceRequest) {
		r.Tolerations = []resourcev1.DeviceToleration{{Key: "broken", Operator: resourcev1.DeviceTolerationOpExists}}
	})
	return map[string]claimForm{
		"shares": {
			nodes: map[string][]resourcev1.Device{"a": objects.GPUs(2, nil, objects.ByMemory),
				"b": objects.GPUs(2, nil, objects.ByMemory)},
			before: map[string]claimAsk{"b": oneRequest(objects.OfMemory(50))}, pod: oneRequest(objects.OfMemory(20)),
			node: "b", devices: []string{"gpu-0"},
		},
		"partitions": {
			nodes: map[string][]resourcev1.Device{"a": parts, "b": parts}, counters: counters,
			before: map[string]claimAsk{"b": oneRequest(objects.Matching(attribute("type") + ` == "mig"`))}, pod: oneRequest(objects.Matching(attribute("type") + ` == "mig"`)),
			node: "b", devices: []string{"gpu-0-half-1"},
		},
		"resource-of-class": {
			nodes:  map[string][]resourcev1.Device{"a": four, "b": four},
			before: map[string]claimAsk{"b": {resource: "class", count: "1"}}, pod: claimAsk{resource: "class", count: "2"},
			node: "b", devices: []string{"gpu-1", "gpu-2"},
		},
		"resource-by-name": {
			driver: "gpu.amd.com", resource: "amd.com/gpu",
			nodes:  map[string][]resourcev1.Device{"a": four, "b": four},
			before: map[string]claimAsk{"b": {resource: "amd.com/gpu", count: "1"}},
			pod:    claimAsk{resource: "amd.com/gpu", count: "2"},
			node:   "b", devices: []string{"gpu-1", "gpu-2"},
		},
		"selectors": {
			nodes: map[string][]resourcev1.Device{"a": two, "b": two,
				"c": objects.GPUs(1, map[string]string{"productName": "Tesla T4"})},
			before: map[string]claimAsk{"b": oneRequest(nil)}, pod: oneRequest(objects.Matching(attribute("productName") + `.startsWith("NVIDIA A100")`)),
			node: "b", devices: []string{"gpu-1"},
		},
		"all": {
			nodes: map[string][]resourcev1.Device{"a": four, "b": two},
			pod: oneRequest(func(r *resourcev1.ExactDeviceRequest) {
				r.AllocationMode, r.Count = resourcev1.DeviceAllocationModeAll, 0
				objects.Matching(attribute("number") + " < 2")(r)
			}),
			node: "b", devices: []string{"gpu-0", "gpu-1"},
		},
		"first-available": {
			nodes:  map[string][]resourcev1.Device{"a": two, "b": two},
			before: map[string]claimAsk{"b": oneRequest(nil)}, pod: either,
			node: "b", devices: []string{"gpu-1"},
		},
		"several-that-match": {
			nodes: map[string][]resourcev1.Device{"a": rooted(objects.GPUs(4, nil)), "b": rooted(objects.GPUs(4, nil)),
				"c": rooted(objects.GPUs(4, nil))},
			before: map[string]claimAsk{
				"a": oneRequest(func(r *resourcev1.ExactDeviceRequest) {
					r.Count = 2
					objects.Matching(attribute("number") + " in [1, 2]")(r)
				}),
				"b": pair,
			},
			pod: paired, node: "b", devices: []string{"gpu-2", "gpu-3"},
		},
		"from-a-template": {
			nodes:  map[string][]resourcev1.Device{"a": two, "b": two},
			before: map[string]claimAsk{"b": oneRequest(nil)}, pod: fromTemplate,
			node: "b", devices: []string{"gpu-1"},
		},
		"tainted": {
			nodes:  map[string][]resourcev1.Device{"a": two, "b": broken},
			before: map[string]claimAsk{"b": oneRequest(nil)}, pod: oneRequest(nil),
			node: "a", devices: []string{"gpu-0"},
		},
		"tolerated": {
			nodes:  map[string][]resourcev1.Device{"b": broken},
			before: map[string]claimAsk{"b": oneRequest(nil)}, pod: tolerating,
			node: "b", devices: []string{"gpu-1"},
		},
	}
}

// testClaims asks for GPUs in every way that the API knows. Each time one node is in use and another is not, or another
// packs worse, and devices are chosen by the scheduler's own allocator.
func testClaims(t *testing.T, b *box.Box) {
	var shapes strings.Builder
	shapes.WriteString("shapes:\n")
	forms := claimForms()
	for name, form := range forms {
		for letter := range form.nodes {
			fmt.Fprintf(&shapes, "- {name: %s-%s, count: 1, labels: {form: %s}, allocatable: {cpu: \"16\", memory: 64Gi}}\n",
				name, letter, name)
		}
	}
	g := &gpus{b.Part(t, "claims", shapes.String())}
	tests := map[string]func(*testing.T){}
	for name, form := range forms {
		tests[name] = func(t *testing.T) {
			g.publish(t, name, &form)
			for letter := range form.nodes {
				// A node that is not in use runs a pod without GPUs: CPU must not tell which is the best.
				g.ask(t, name, "before-"+letter, form.before[letter], name+"-"+letter+"-0")
			}
			for letter := range form.nodes {
				g.Bound(t, name+"-before-"+letter, "")
			}
			g.ask(t, name, "pod", form.pod, "")
			pod := g.Bound(t, name+"-pod", "")
			if want := name + "-" + form.node + "-0"; pod.Spec.NodeName != want {
				t.Errorf("the pod is on %s, want %s", pod.Spec.NodeName, want)
			}
			if got := g.allocated(t, pod); !slices.Equal(got, form.devices) {
				t.Errorf("devices %v are allocated, want %v", got, form.devices)
			}
		}
	}
	box.SideBySide(t, tests)
}

// publish creates the form's class and slices.
func (g *gpus) publish(t *testing.T, name string, form *claimForm) {
	t.Helper()
	if form.driver == "" {
		form.driver = "gpu.nvidia.com"
	}
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	class.Spec.Selectors = objects.Selectors(fmt.Sprintf(`device.driver == %q && device.attributes[%q].form == %q`, form.driver, form.driver, name))
	if form.resource != "" {
		class.Spec.ExtendedResourceName = &form.resource
	}
	g.deviceClass(t, class)
	for letter, devices := range form.nodes {
		node := name + "-" + letter + "-0"
		pool := resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}
		if len(form.counters) > 0 {
			pool.ResourceSliceCount = 2
			g.slice(t, node+"-counters", resourcev1.ResourceSliceSpec{Driver: form.driver, NodeName: &node, Pool: pool,
				SharedCounters: form.counters})
		}
		own := make([]resourcev1.Device, len(devices))
		for i := range devices {
			devices[i].DeepCopyInto(&own[i])
			own[i].Attributes["form"] = resourcev1.DeviceAttribute{StringValue: &name}
		}
		g.slice(t, node, resourcev1.ResourceSliceSpec{Driver: form.driver, NodeName: &node, Pool: pool, Devices: own})
	}
}

// deviceClass creates a class for as long as the test lasts.
func (g *gpus) deviceClass(t *testing.T, class *resourcev1.DeviceClass) {
	t.Helper()
	classes := g.Client.ResourceV1().DeviceClasses()
	if _, err := classes.Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := classes.Delete(context.WithoutCancel(t.Context()), class.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// slice creates a slice for as long as the test lasts.
func (g *gpus) slice(t *testing.T, name string, spec resourcev1.ResourceSliceSpec) {
	t.Helper()
	slices := g.Client.ResourceV1().ResourceSlices()
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	if _, err := slices.Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := slices.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// ask creates a pod that asks for devices, on one node or on any of the form's.
func (g *gpus) ask(t *testing.T, form, name string, ask claimAsk, node string) {
	t.Helper()
	pod := gpuPod(form+"-"+name, nil, nil)
	pod.Spec.NodeSelector["form"] = form
	if node != "" {
		pod.Spec.NodeSelector[v1.LabelHostname] = node
	}
	switch {
	case ask.resource != "":
		resourceName := ask.resource
		if resourceName == "class" {
			resourceName = resourcev1.ResourceDeviceClassPrefix + form
		}
		asking(strs{resourceName: ask.count})(pod)
	case ask.claim != nil:
		claim := ask.claim.DeepCopy()
		for i := range claim.Requests {
			if r := claim.Requests[i].Exactly; r != nil {
				r.DeviceClassName = form
			}
			for j := range claim.Requests[i].FirstAvailable {
				claim.Requests[i].FirstAvailable[j].DeviceClassName = form
			}
		}
		use := v1.PodResourceClaim{Name: "gpus"}
		meta := metav1.ObjectMeta{Name: pod.Name}
		var err error
		if ask.template {
			use.ResourceClaimTemplateName = &pod.Name
			template := &resourcev1.ResourceClaimTemplate{ObjectMeta: meta,
				Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{Devices: *claim}}}
			_, err = g.Client.ResourceV1().ResourceClaimTemplates(g.Namespace).Create(t.Context(), template,
				metav1.CreateOptions{})
		} else {
			use.ResourceClaimName = &pod.Name
			_, err = g.Client.ResourceV1().ResourceClaims(g.Namespace).Create(t.Context(),
				&resourcev1.ResourceClaim{ObjectMeta: meta, Spec: resourcev1.ResourceClaimSpec{Devices: *claim}},
				metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		pod.Spec.ResourceClaims = []v1.PodResourceClaim{use}
		pod.Spec.Containers[0].Resources.Claims = []v1.ResourceClaim{{Name: "gpus"}}
	}
	g.Create(t, pod)
}

// allocated are the names of the devices of the pod's claim, in order.
func (g *gpus) allocated(t *testing.T, pod *v1.Pod) []string {
	t.Helper()
	list, err := g.Client.ResourceV1().ResourceClaims(g.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var devices []string
	for i := range list.Items {
		claim := &list.Items[i]
		if claim.Status.Allocation == nil || !slices.ContainsFunc(claim.Status.ReservedFor,
			func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == pod.UID }) {
			continue
		}
		for _, r := range claim.Status.Allocation.Devices.Results {
			devices = append(devices, r.Device)
		}
	}
	slices.Sort(devices)
	return devices
}
