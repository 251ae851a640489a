package gpuaware

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/test/harness/box"
)

// claimForm is one way to ask for GPUs by dynamic resource allocation. Its nodes are its own, and so is its class, which
// selects its devices alone.
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

// claimAsk is what a pod asks for: a claim, or so many of a resource.
type claimAsk struct {
	claim    *resourcev1.DeviceClaim
	template bool
	resource string
	count    string
}

// numbered makes n devices alike, each with its number.
func numbered(n int, text map[string]string, change ...func(*resourcev1.Device)) []resourcev1.Device {
	devices := make([]resourcev1.Device, n)
	for i := range devices {
		d := resourcev1.Device{
			Name: fmt.Sprintf("gpu-%d", i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"number": {IntValue: ptr.To(int64(i))}, "type": {StringValue: ptr.To("gpu")}, "productName": {StringValue: ptr.To("NVIDIA A100-SXM4-80GB")},
			},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}},
		}
		for key, value := range text {
			d.Attributes[resourcev1.QualifiedName(key)] = resourcev1.DeviceAttribute{StringValue: ptr.To(value)}
		}
		for _, c := range change {
			c(&d)
		}
		devices[i] = d
	}
	return devices
}

// asking is a claim of one request.
func asking(change func(*resourcev1.ExactDeviceRequest)) claimAsk {
	r := &resourcev1.ExactDeviceRequest{AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}
	if change != nil {
		change(r)
	}
	return claimAsk{claim: &resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpus", Exactly: r}}}}
}

// selecting restricts a request by an expression.
func selecting(expression string) func(*resourcev1.ExactDeviceRequest) {
	return func(r *resourcev1.ExactDeviceRequest) {
		r.Selectors = append(r.Selectors, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: expression}})
	}
}

// several shares each GPU by memory, in steps of a GiB.
func several(d *resourcev1.Device) {
	d.AllowMultipleAllocations = ptr.To(true)
	d.Capacity["memory"] = resourcev1.DeviceCapacity{Value: resource.MustParse("80Gi"), RequestPolicy: &resourcev1.CapacityRequestPolicy{
		Default: ptr.To(resource.MustParse("80Gi")), ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: ptr.To(resource.MustParse("1Gi"))},
	}}
}

func memoryOf(gib int) func(*resourcev1.ExactDeviceRequest) {
	return func(r *resourcev1.ExactDeviceRequest) {
		r.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(fmt.Sprint(gib, "Gi"))}}
	}
}

// partitions are n GPUs that can be had whole or in halves.
func partitions(n int) (devices []resourcev1.Device, counters []resourcev1.CounterSet) {
	takes := func(set, memory string) []resourcev1.DeviceCounterConsumption {
		return []resourcev1.DeviceCounterConsumption{{CounterSet: set, Counters: map[string]resourcev1.Counter{"memory": {Value: resource.MustParse(memory)}}}}
	}
	for i, d := range numbered(n, nil) {
		set := fmt.Sprintf("counters-%d", i)
		counters = append(counters, resourcev1.CounterSet{Name: set, Counters: map[string]resourcev1.Counter{"memory": {Value: resource.MustParse("80Gi")}}})
		d.ConsumesCounters = takes(set, "80Gi")
		devices = append(devices, d)
		for half, p := range numbered(2, map[string]string{"type": "mig", "profile": "3g.40gb"}) {
			p.Name, p.ConsumesCounters = fmt.Sprintf("gpu-%d-half-%d", i, half), takes(set, "40Gi")
			devices = append(devices, p)
		}
	}
	return devices, counters
}

// rooted puts pairs of GPUs behind one PCIe root.
func rooted(devices []resourcev1.Device) []resourcev1.Device {
	for i := range devices {
		devices[i].Attributes["root"] = resourcev1.DeviceAttribute{StringValue: ptr.To(fmt.Sprint("root-", i/2))}
	}
	return devices
}

func claimForms() map[string]claimForm {
	parts, counters := partitions(2)
	two, four := numbered(2, nil), numbered(4, nil)
	attribute := func(name string) string { return fmt.Sprintf("device.attributes[%q].%s", gpuDriver, name) }
	pair := asking(func(r *resourcev1.ExactDeviceRequest) { r.Count = 2 })
	paired := claimAsk{claim: &resourcev1.DeviceClaim{
		Requests: []resourcev1.DeviceRequest{
			{Name: "one", Exactly: &resourcev1.ExactDeviceRequest{AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}},
			{Name: "other", Exactly: &resourcev1.ExactDeviceRequest{AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}},
		},
		Constraints: []resourcev1.DeviceConstraint{{MatchAttribute: ptr.To(resourcev1.FullyQualifiedName(gpuDriver + "/root"))}},
	}}
	either := claimAsk{claim: &resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpus", FirstAvailable: []resourcev1.DeviceSubRequest{
		{Name: "huge", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 5},
		{Name: "small", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1},
	}}}}}
	fromTemplate := asking(nil)
	fromTemplate.template = true
	broken := numbered(2, nil)
	broken[1].Taints = []resourcev1.DeviceTaint{{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
	tolerating := asking(func(r *resourcev1.ExactDeviceRequest) {
		r.Tolerations = []resourcev1.DeviceToleration{{Key: "broken", Operator: resourcev1.DeviceTolerationOpExists}}
	})
	return map[string]claimForm{
		"shares": {
			nodes:  map[string][]resourcev1.Device{"a": numbered(2, nil, several), "b": numbered(2, nil, several)},
			before: map[string]claimAsk{"b": asking(memoryOf(50))}, pod: asking(memoryOf(20)),
			node: "b", devices: []string{"gpu-0"},
		},
		"partitions": {
			nodes: map[string][]resourcev1.Device{"a": parts, "b": parts}, counters: counters,
			before: map[string]claimAsk{"b": asking(selecting(attribute("type") + ` == "mig"`))}, pod: asking(selecting(attribute("type") + ` == "mig"`)),
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
			before: map[string]claimAsk{"b": {resource: "amd.com/gpu", count: "1"}}, pod: claimAsk{resource: "amd.com/gpu", count: "2"},
			node: "b", devices: []string{"gpu-1", "gpu-2"},
		},
		"selectors": {
			nodes:  map[string][]resourcev1.Device{"a": two, "b": two, "c": numbered(1, map[string]string{"productName": "Tesla T4"})},
			before: map[string]claimAsk{"b": asking(nil)}, pod: asking(selecting(attribute("productName") + `.startsWith("NVIDIA A100")`)),
			node: "b", devices: []string{"gpu-1"},
		},
		"all": {
			nodes: map[string][]resourcev1.Device{"a": four, "b": two},
			pod: asking(func(r *resourcev1.ExactDeviceRequest) {
				r.AllocationMode, r.Count = resourcev1.DeviceAllocationModeAll, 0
				selecting(attribute("number") + " < 2")(r)
			}),
			node: "b", devices: []string{"gpu-0", "gpu-1"},
		},
		"first-available": {
			nodes:  map[string][]resourcev1.Device{"a": two, "b": two},
			before: map[string]claimAsk{"b": asking(nil)}, pod: either,
			node: "b", devices: []string{"gpu-1"},
		},
		"several-that-match": {
			nodes: map[string][]resourcev1.Device{"a": rooted(numbered(4, nil)), "b": rooted(numbered(4, nil)), "c": rooted(numbered(4, nil))},
			before: map[string]claimAsk{
				"a": asking(func(r *resourcev1.ExactDeviceRequest) {
					r.Count = 2
					selecting(attribute("number") + " in [1, 2]")(r)
				}),
				"b": pair,
			},
			pod: paired, node: "b", devices: []string{"gpu-2", "gpu-3"},
		},
		"from-a-template": {
			nodes:  map[string][]resourcev1.Device{"a": two, "b": two},
			before: map[string]claimAsk{"b": asking(nil)}, pod: fromTemplate,
			node: "b", devices: []string{"gpu-1"},
		},
		"tainted": {
			nodes:  map[string][]resourcev1.Device{"a": two, "b": broken},
			before: map[string]claimAsk{"b": asking(nil)}, pod: asking(nil),
			node: "a", devices: []string{"gpu-0"},
		},
		"tolerated": {
			nodes:  map[string][]resourcev1.Device{"b": broken},
			before: map[string]claimAsk{"b": asking(nil)}, pod: tolerating,
			node: "b", devices: []string{"gpu-1"},
		},
	}
}

// TestClaimsOnARealControlPlane asks for GPUs in every way that the API knows. Each time one node is in use and another
// is not, or another packs worse, and devices are chosen by the scheduler's own allocator.
func TestClaimsOnARealControlPlane(t *testing.T) {
	t.Parallel()
	var shapes strings.Builder
	shapes.WriteString("shapes:\n")
	forms := claimForms()
	for name, form := range forms {
		for letter := range form.nodes {
			fmt.Fprintf(&shapes, "- {name: %s-%s, count: 1, labels: {form: %s}, allocatable: {cpu: \"16\", memory: 64Gi}}\n", name, letter, name)
		}
	}
	w := &world{box.Start(t, shapes.String(), sandbox.Options{})}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w.publish(t, name, &form)
			for letter := range form.nodes {
				// A node that is not in use runs a pod without GPUs: CPU must not tell which is the best.
				w.ask(t, name, "before-"+letter, form.before[letter], name+"-"+letter+"-0")
			}
			for letter := range form.nodes {
				w.Bound(t, name+"-before-"+letter, "")
			}
			w.ask(t, name, "pod", form.pod, "")
			pod := w.Bound(t, name+"-pod", "")
			if want := name + "-" + form.node + "-0"; pod.Spec.NodeName != want {
				t.Errorf("the pod is on %s, want %s", pod.Spec.NodeName, want)
			}
			if got := w.allocated(t, pod); !slices.Equal(got, form.devices) {
				t.Errorf("devices %v are allocated, want %v", got, form.devices)
			}
		})
	}
}

// publish creates the form's class and slices.
func (w *world) publish(t *testing.T, name string, form *claimForm) {
	t.Helper()
	if form.driver == "" {
		form.driver = gpuDriver
	}
	api := w.Client.ResourceV1()
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
		Expression: fmt.Sprintf(`device.driver == %q && device.attributes[%q].form == %q`, form.driver, form.driver, name),
	}}}
	if form.resource != "" {
		class.Spec.ExtendedResourceName = &form.resource
	}
	if _, err := api.DeviceClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for letter, devices := range form.nodes {
		node := name + "-" + letter + "-0"
		pool := resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}
		if len(form.counters) > 0 {
			pool.ResourceSliceCount = 2
			w.slice(t, node+"-counters", resourcev1.ResourceSliceSpec{Driver: form.driver, NodeName: &node, Pool: pool, SharedCounters: form.counters})
		}
		own := make([]resourcev1.Device, len(devices))
		for i := range devices {
			devices[i].DeepCopyInto(&own[i])
			own[i].Attributes["form"] = resourcev1.DeviceAttribute{StringValue: &name}
		}
		w.slice(t, node, resourcev1.ResourceSliceSpec{Driver: form.driver, NodeName: &node, Pool: pool, Devices: own})
	}
}

func (w *world) slice(t *testing.T, name string, spec resourcev1.ResourceSliceSpec) {
	t.Helper()
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	if _, err := w.Client.ResourceV1().ResourceSlices().Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// ask creates a pod that asks for devices, on one node or on any of the form's.
func (w *world) ask(t *testing.T, form, name string, ask claimAsk, node string) {
	t.Helper()
	pod := podObject(form+"-"+name, nil, nil)
	pod.Spec.NodeSelector = map[string]string{"form": form}
	if node != "" {
		pod.Spec.NodeSelector[v1.LabelHostname] = node
	}
	switch {
	case ask.resource != "":
		resourceName := ask.resource
		if resourceName == "class" {
			resourceName = resourcev1.ResourceDeviceClassPrefix + form
		}
		pod.Spec.Containers[0].Resources.Requests[v1.ResourceName(resourceName)] = resource.MustParse(ask.count)
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
			template := &resourcev1.ResourceClaimTemplate{ObjectMeta: meta, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{Devices: *claim}}}
			_, err = w.Client.ResourceV1().ResourceClaimTemplates("default").Create(t.Context(), template, metav1.CreateOptions{})
		} else {
			use.ResourceClaimName = &pod.Name
			_, err = w.Client.ResourceV1().ResourceClaims("default").Create(t.Context(),
				&resourcev1.ResourceClaim{ObjectMeta: meta, Spec: resourcev1.ResourceClaimSpec{Devices: *claim}}, metav1.CreateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		pod.Spec.ResourceClaims = []v1.PodResourceClaim{use}
		pod.Spec.Containers[0].Resources.Claims = []v1.ResourceClaim{{Name: "gpus"}}
	}
	pod.UID = ""
	resources := &pod.Spec.Containers[0].Resources
	resources.Limits = resources.Requests.DeepCopy()
	w.Create(t, pod)
}

// allocated are the names of the devices of the pod's claim, in order.
func (w *world) allocated(t *testing.T, pod *v1.Pod) []string {
	t.Helper()
	list, err := w.Client.ResourceV1().ResourceClaims("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var devices []string
	for i := range list.Items {
		claim := &list.Items[i]
		if claim.Status.Allocation == nil || !slices.ContainsFunc(claim.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == pod.UID }) {
			continue
		}
		for _, r := range claim.Status.Allocation.Devices.Results {
			devices = append(devices, r.Device)
		}
	}
	slices.Sort(devices)
	return devices
}
