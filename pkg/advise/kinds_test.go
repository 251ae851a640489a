package advise

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/assert"
)

// sharing makes the scheduler give out parts of the node's GPUs.
func sharing(n *v1.Node) *v1.Node {
	n.Labels["berth.dev/gpu-mode"] = "shared"
	return n
}

// share asks for a number of thousandths of a GPU; a pod on a node has them of GPU 0, and a record of that.
func share(milli int) func(*v1.Pod) {
	return func(p *v1.Pod) {
		for _, list := range []v1.ResourceList{p.Spec.Containers[0].Resources.Requests,
			p.Spec.Containers[0].Resources.Limits} {
			delete(list, "nvidia.com/gpu")
		}
		p.Annotations = map[string]string{"gpu-fraction": fmt.Sprint(float64(milli) / 1000)}
		if on := p.Spec.NodeName; on != "" {
			record := fmt.Sprintf(`{"pod":%q,"node":%q,"devices":[0],"milli":%d}`, p.UID, on, milli)
			p.Annotations["runai-gpu"], p.Annotations[wellknown.GPUAssignedKey] = "0", record
			p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: gpuview.GPUsAssigned,
				Status: v1.ConditionTrue, Message: record})
		}
	}
}

// rack puts a node into a rack, inOneRack keeps a gang to one.
func rack(n *v1.Node, name string) *v1.Node {
	n.Labels["topology.kubernetes.io/rack"] = name
	return n
}

func inOneRack(p *v1.Pod) {
	p.Annotations = map[string]string{"berth.dev/topology-required": "topology.kubernetes.io/rack"}
}

// gangOf makes the pod a member of the gang g with a minimum.
func gangOf(members string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Labels["pod-group.scheduling.sigs.k8s.io/name"], p.Labels["pod-group.scheduling.sigs.k8s.io/min-available"] = "g",
			members
	}
}

// slice is that of the eight devices of a node.
func slice(node string) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node + "-gpus", UID: types.UID(node + "-gpus")},
		Spec: resourcev1.ResourceSliceSpec{Driver: "gpu.nvidia.com", NodeName: &node,
			Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}}}
	for i := range 8 {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: fmt.Sprint("gpu-", i)})
	}
	return s
}

var deviceClass = &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu.nvidia.com"},
	Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.nvidia.com"`}}}}}

// claiming is a pod with a claim for n devices made for it, allocated from the first that it may have on its node, and
// the claim.
func claiming(name, on string, n, first int, change ...func(*v1.Pod)) []runtime.Object {
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-gpus", Namespace: "default", UID: types.UID("claim-" + name),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: name, UID: types.UID("pod-" + name),
				Controller: ptr.To(true)}}},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpus",
			Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com",
				AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(n)}}}}},
	}
	p := pod(name, on, "0", append([]func(*v1.Pod){func(p *v1.Pod) {
		p.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpus", ResourceClaimTemplateName: ptr.To("template")}}
		p.Spec.Containers[0].Resources.Claims = []v1.ResourceClaim{{Name: "gpus"}}
		p.Status.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "gpus", ResourceClaimName: ptr.To(claim.Name)}}
	}}, change...)...)
	if on != "" {
		allocation := &resourcev1.AllocationResult{NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn,
				Values: []string{on}}}}}}}
		for i := range n {
			allocation.Devices.Results = append(allocation.Devices.Results,
				resourcev1.DeviceRequestAllocationResult{Request: "gpus", Driver: "gpu.nvidia.com", Pool: on,
					Device: fmt.Sprint("gpu-", first+i)})
		}
		claim.Status = resourcev1.ResourceClaimStatus{Allocation: allocation,
			ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: name, UID: p.UID}}}
	}
	return []runtime.Object{p, claim}
}

func all(parts ...any) (objects []runtime.Object) {
	for _, part := range parts {
		switch part := part.(type) {
		case []runtime.Object:
			objects = append(objects, part...)
		case runtime.Object:
			objects = append(objects, part)
		}
	}
	return objects
}

func TestPodsAreMovedForWorkOfEveryKind(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		objects []runtime.Object
		want    string // what the plan for the first unit moves
		verdict string
	}{
		{"shares of one GPU move so that a whole one is free", all(sharing(node("a", "1", "1")), sharing(node("b", "1", "1")),
			pod("x", "a", "0", share(500)), pod("y", "b", "0", share(500)), pod("p", "", "1")), "x from a to b; p on a", ""},
		{"a share waits for a part that is free on no single GPU",
			all(sharing(node("a", "1", "1")), sharing(node("b", "1", "1")),
				pod("x", "a", "0", share(400)), pod("y", "b", "0", share(300), bare), pod("p", "", "0", share(800))),
			"x from a to b; p on a", ""},
		{"shares that are too large for one GPU together stay",
			all(sharing(node("a", "1", "1")), sharing(node("b", "1", "1")),
				pod("x", "a", "0", share(600)), pod("y", "b", "0", share(600)), pod("p", "", "1")), "",
			"moving pods does not help"},
		{"devices of claims", all(deviceClass, node("a", "0", "1"), node("b", "0", "1"), slice("a"), slice("b"),
			claiming("x", "a", 5, 0, bare), claiming("y", "a", 1, 5), claiming("z", "b", 6, 0, bare), claiming("p", "", 3, 0)),
			"y from a to b; p on a", ""},
		{"a claim moves for a pod that wants cores", all(deviceClass, node("a", "0", "1"), node("b", "0", "1"), slice("a"),
			slice("b"),
			claiming("x", "a", 5, 0), pod("y", "b", "0", bare, cores("20")), pod("p", "", "0", cores("32"))),
			"x from a to b; p on a", ""},
		{"claims that fit nowhere else stay", all(deviceClass, node("a", "0", "1"), node("b", "0", "1"), slice("a"),
			slice("b"),
			claiming("x", "a", 6, 0), claiming("z", "b", 6, 0), claiming("p", "", 3, 0)), "", "moving pods does not help"},
		{"a gang that needs one rack", all(rack(node("a1", "8", "1"), "a"), rack(node("a2", "8", "1"), "a"),
			rack(node("b1", "8", "1"), "b"), rack(node("b2", "8", "1"), "b"),
			rack(node("c1", "8", "1"), "c"), pod("v", "a2", "8", bare), pod("w", "b1", "1"), pod("x", "b2", "1"),
			pod("z", "c1", "2", bare),
			pod("g1", "", "8", gangOf("2"), inOneRack), pod("g2", "", "8", gangOf("2"), inOneRack)),
			"w from b1 to c1; x from b2 to c1; g", ""},
		{"the cheapest nodes of a gang are in two racks, of many", manyRacks(), "w from z1 to ", ""},
		{"no rack can have room for a gang", all(rack(node("a1", "8", "1"), "a"), rack(node("b1", "8", "1"), "b"),
			rack(node("c1", "8", "1"), "c"), pod("w", "a1", "1"),
			pod("g1", "", "8", gangOf("2"), inOneRack), pod("g2", "", "8", gangOf("2"), inOneRack)), "",
			"moving pods does not help"},
		{"one of the members of a gang needs more than the others", all(node("a", "8", "1"), node("b", "8", "1"),
			pod("x", "a", "1"), pod("y", "b", "4", bare),
			pod("g1", "", "8", gangOf("3")), pod("g2", "", "1", gangOf("3")), pod("g3", "", "1", gangOf("3"))),
			"x from a to b; g", ""},
		{"the small members of a gang need room when the large one has it", all(node("a", "8", "1"), node("b", "2", "1"),
			node("c", "2", "1"), pod("x", "b", "1"), pod("y", "c", "1"),
			pod("g1", "", "8", gangOf("2")), pod("g2", "", "2", gangOf("2"))), "x from b to c; g", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := ask(t, Unit{}, tt.objects...)
			if len(a.Pending) != 1 {
				t.Fatalf("%d units wait: %+v", len(a.Pending), a.Pending)
			}
			p := a.Pending[0]
			if got := moved(p.Plan); tt.want == "" && got != "" || !strings.HasPrefix(got, tt.want) {
				t.Errorf("moves %q, want %q (%s; %s)", got, tt.want, p.Verdict, p.Why)
			}
			assert.Contains(t, p.Verdict, tt.verdict)
			if p.Plan != nil && len(p.Plan.Starts) != p.Members {
				t.Errorf("%d of %d pods start", len(p.Plan.Starts), p.Members)
			}
		})
	}
}

func cores(n string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		for _, list := range []v1.ResourceList{p.Spec.Containers[0].Resources.Requests,
			p.Spec.Containers[0].Resources.Limits} {
			list["cpu"] = resource.MustParse(n)
		}
	}
}

// manyRacks are racks of one node that is cheap to free and one that is full of what must not move, and a last one of
// two that are dearer.
func manyRacks() []runtime.Object {
	objects := all(node("spare", "8", "1"), pod("s", "spare", "4", bare), rack(node("z1", "8", "1"), "z"),
		rack(node("z2", "8", "1"), "z"), pod("w", "z1", "1"), pod("x", "z2", "1"))
	for i := range 12 {
		name := fmt.Sprint("r", i)
		objects = append(objects, rack(node(name, "8", "1"), name), pod("p"+name, name, "1"),
			rack(node("full-"+name, "8", "1"), name), pod("full-"+name, "full-"+name, "8", bare))
	}
	return append(objects, pod("g1", "", "8", gangOf("2"), inOneRack), pod("g2", "", "8", gangOf("2"), inOneRack))
}
