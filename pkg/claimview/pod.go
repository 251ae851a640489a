package claimview

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	fwk "k8s.io/kube-scheduler/framework"
	schedutil "k8s.io/kubernetes/pkg/scheduler/util"

	"berth.dev/berth/pkg/gpuview"
	"berth.dev/berth/pkg/podview"
)

// maxShape bounds the text by which claims are told apart: what is longer is not remembered.
const maxShape = 16 << 10

// Pod are the devices that have to be allocated for a pod: those of its own claims that are not allocated yet, and
// those of extended resources for which a device class stands in.
type Pod struct {
	// own are the claims of the pod's own, allocated are those that have their devices already.
	own, allocated []*resourcev1.ResourceClaim
	resources      []ClassResource
	// reuses reports init containers that ask for such resources, whose devices other containers may get after them.
	reuses bool
	// varies reports requests for a number of devices that depends on the node: for all of them, or the first of a list
	// that there is.
	varies bool
	// shape is equal for pods for which equal devices have to be allocated; empty where it is too long to remember.
	shape string
}

// ClassResource is an extended resource for which a device class stands in.
type ClassResource struct {
	name  v1.ResourceName
	class string
	count int64
}

// Shape is equal for pods for which equal devices have to be allocated; empty where it is too long to remember.
func (c *Pod) Shape() string { return c.shape }

// Allocated are the claims that have their devices already.
func (c *Pod) Allocated() []*resourcev1.ResourceClaim { return c.allocated }

// Resources are the extended resources for which a device class stands in.
func (c *Pod) Resources() []ClassResource { return c.resources }

// Varies reports that how many devices are given depends on the node.
func (c *Pod) Varies() bool { return c.varies }

// Reuses reports that containers may get devices one after the other: how many the pod needs is for the allocator to
// say.
func (c *Pod) Reuses() bool { return c.reuses }

// Serves reports whether claims serve one of these resources on a node: a class stands in for it, and the kubelet
// offers none.
func (c *Pod) Serves(info fwk.NodeInfo, resources []v1.ResourceName) bool {
	return slices.ContainsFunc(c.On(info), func(r ClassResource) bool { return slices.Contains(resources, r.name) })
}

// On are the resources that claims serve on a node.
func (c *Pod) On(info fwk.NodeInfo) []ClassResource {
	offered := info.GetAllocatable().GetScalarResources()
	if !slices.ContainsFunc(c.resources, func(r ClassResource) bool { return offered[r.name] > 0 }) {
		return c.resources
	}
	var served []ClassResource
	for _, r := range c.resources {
		if offered[r.name] == 0 {
			served = append(served, r)
		}
	}
	return served
}

// Claims are those that have to be allocated on a node that serves these resources by claims.
func (c *Pod) Claims(resources []ClassResource) []*resourcev1.ResourceClaim {
	if len(resources) == 0 {
		return c.own
	}
	return append(slices.Clone(c.own), claimFor(resources))
}

// Anonymous is a claim for a number of devices of the class that stands in for the resource.
func (r ClassResource) Anonymous(count int) *resourcev1.ResourceClaim {
	r.count = int64(count)
	return claimFor([]ClassResource{r})
}

// claimFor is the claim for these extended resources.
func claimFor(resources []ClassResource) *resourcev1.ResourceClaim {
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "extended-resources"}}
	for i, r := range resources {
		claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, resourcev1.DeviceRequest{
			Name: fmt.Sprintf("resource-%d", i),
			Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: r.class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: r.count,
			},
		})
	}
	return claim
}

// readPod finds what has to be allocated for a pod; nil for nothing. Claims that do not exist yet, and classes that
// do not, are left to the allocator.
func readPod(pod *v1.Pod, dra fwk.SharedDRAManager) *Pod {
	if !MayClaim(pod) {
		return nil
	}
	c := &Pod{}
	for i := range pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		if err != nil || name == nil {
			continue
		}
		claim, err := dra.ResourceClaims().Get(pod.Namespace, *name)
		switch {
		case err != nil:
		case claim.Status.Allocation != nil:
			c.allocated = append(c.allocated, claim)
		default:
			c.own = append(c.own, claim)
			for j := range claim.Spec.Devices.Requests {
				r := claim.Spec.Devices.Requests[j].Exactly
				c.varies = c.varies || r == nil || r.AllocationMode == resourcev1.DeviceAllocationModeAll
			}
		}
	}
	if resolver := dra.DeviceClassResolver(); resolver != nil {
		c.readResources(pod, resolver)
	}
	if len(c.own) == 0 && len(c.allocated) == 0 && len(c.resources) == 0 {
		return nil
	}
	c.shape = c.encode(dra)
	return c
}

func (c *Pod) readResources(pod *v1.Pod, resolver fwk.DeviceClassResolver) {
	if !namesRequest(pod, func(name v1.ResourceName) bool {
		// In this order: few names have a class, and to look at a name takes longer.
		return mayHaveClass(name) && resolver.GetDeviceClass(name) != nil && schedutil.IsDRAExtendedResourceName(name)
	}) {
		return // most pods, whose requests need not be added up for it
	}
	for name, q := range podview.Requests(pod) {
		if q.Sign() <= 0 || !schedutil.IsDRAExtendedResourceName(name) {
			continue
		}
		if class := resolver.GetDeviceClass(name); class != nil {
			c.resources = append(c.resources, ClassResource{name, class.Name, min(q.Value(), gpuview.MaxGPUs)})
		}
	}
	slices.SortFunc(c.resources, func(a, b ClassResource) int { return strings.Compare(string(a.name), string(b.name)) })
	for i := range pod.Spec.InitContainers {
		for _, r := range c.resources {
			if _, asks := pod.Spec.InitContainers[i].Resources.Requests[r.name]; asks {
				c.reuses = true
			}
		}
	}
}

// errTooLong says that claims are not worth remembering.
var errTooLong = errors.New("too long")

// encode writes down all that an allocator reads of the claims and their classes.
func (c *Pod) encode(dra fwk.SharedDRAManager) string {
	var out []byte
	add := func(value any) error {
		text, err := json.Marshal(value)
		if out = append(append(out, text...), '\n'); len(out) > maxShape {
			return errTooLong
		}
		return err
	}
	class := func(name string) error {
		found, err := dra.DeviceClasses().Get(name)
		if err != nil {
			return add(name)
		}
		return add(found.Spec)
	}
	for _, claim := range c.own {
		if add(claim.Spec) != nil {
			return ""
		}
		for i := range claim.Spec.Devices.Requests {
			for _, name := range classesOf(&claim.Spec.Devices.Requests[i]) {
				if class(name) != nil {
					return ""
				}
			}
		}
	}
	for _, r := range c.resources {
		if add(fmt.Sprint(r)) != nil || class(r.class) != nil {
			return ""
		}
	}
	return string(out)
}

// classesOf are the device classes that a request names.
func classesOf(r *resourcev1.DeviceRequest) []string {
	if r.Exactly != nil {
		return []string{r.Exactly.DeviceClassName}
	}
	classes := make([]string, 0, len(r.FirstAvailable))
	for i := range r.FirstAvailable {
		classes = append(classes, r.FirstAvailable[i].DeviceClassName)
	}
	return classes
}

// ClassMayServe reports whether devices of the class may be allocated for the pod.
func ClassMayServe(pod *v1.Pod, class *resourcev1.DeviceClass) bool {
	if len(pod.Spec.ResourceClaims) > 0 {
		return true
	}
	requests := podview.Requests(pod)
	_, asks := requests[v1.ResourceName(resourcev1.ResourceDeviceClassPrefix+class.Name)]
	if name := class.Spec.ExtendedResourceName; name != nil && !asks {
		_, asks = requests[v1.ResourceName(*name)]
	}
	return asks
}

// Claims reports whether the claim is one of the pod's own.
func Claims(pod *v1.Pod, claim *resourcev1.ResourceClaim) bool {
	return pod.Namespace == claim.Namespace &&
		slices.ContainsFunc(pod.Spec.ResourceClaims, func(c v1.PodResourceClaim) bool {
			name, _, err := resourceclaim.Name(pod, &c)
			return err == nil && name != nil && *name == claim.Name
		})
}

// MayClaim is a cheap test that is false only for pods for which no device is ever allocated.
func MayClaim(pod *v1.Pod) bool {
	return len(pod.Spec.ResourceClaims) > 0 || namesRequest(pod, mayHaveClass)
}

// namesRequest reports whether the pod requests any of a resource of such a name, however much of it.
func namesRequest(pod *v1.Pod, such func(v1.ResourceName) bool) bool {
	in := func(requests v1.ResourceList) bool {
		for name := range requests {
			if such(name) {
				return true
			}
		}
		return false
	}
	for _, containers := range [][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			if in(containers[i].Resources.Requests) {
				return true
			}
		}
	}
	return in(pod.Spec.Overhead)
}

// mayHaveClass is a cheap test that is false only for resources for which no device class stands in, such as CPU.
func mayHaveClass(name v1.ResourceName) bool { return strings.Contains(string(name), "/") }

// ClaimsDevices reports whether the pod brings claims, or asks for an extended resource for which a device class stands
// in.
func ClaimsDevices(pod *v1.Pod, classes fwk.DeviceClassResolver) bool {
	if len(pod.Spec.ResourceClaims) > 0 {
		return true
	}
	c := Pod{}
	if classes != nil {
		c.readResources(pod, classes)
	}
	return len(c.resources) > 0
}
