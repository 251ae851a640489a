// Package objects makes objects for tests.
package objects

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// GPUs makes n devices of dynamic resource allocation that differ in their number alone, with further attributes.
func GPUs(n int, text map[string]string, change ...func(*resourcev1.Device)) []resourcev1.Device {
	devices := make([]resourcev1.Device, n)
	for i := range devices {
		d := resourcev1.Device{
			Name: fmt.Sprintf("gpu-%d", i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"number": {IntValue: ptr.To(int64(i))}, "type": {StringValue: ptr.To("gpu")},
				"productName": {StringValue: ptr.To("NVIDIA A100-SXM4-80GB")},
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

// ByMemory shares each GPU by memory, in steps of a GiB.
func ByMemory(d *resourcev1.Device) {
	d.AllowMultipleAllocations = ptr.To(true)
	whole := resource.MustParse("80Gi")
	steps := &resourcev1.CapacityRequestPolicyRange{Min: ptr.To(resource.MustParse("1Gi"))}
	d.Capacity["memory"] = resourcev1.DeviceCapacity{
		Value: whole, RequestPolicy: &resourcev1.CapacityRequestPolicy{Default: &whole, ValidRange: steps},
	}
}

// Partitions are n GPUs that can be had whole or in halves.
func Partitions(n int) (devices []resourcev1.Device, counters []resourcev1.CounterSet) {
	has := func(memory string) map[string]resourcev1.Counter {
		return map[string]resourcev1.Counter{"memory": {Value: resource.MustParse(memory)}}
	}
	takes := func(set, memory string) []resourcev1.DeviceCounterConsumption {
		return []resourcev1.DeviceCounterConsumption{{CounterSet: set, Counters: has(memory)}}
	}
	for i, d := range GPUs(n, nil) {
		set := fmt.Sprintf("counters-%d", i)
		counters = append(counters, resourcev1.CounterSet{Name: set, Counters: has("80Gi")})
		d.ConsumesCounters = takes(set, "80Gi")
		devices = append(devices, d)
		for half, p := range GPUs(2, map[string]string{"type": "mig", "profile": "3g.40gb"}) {
			p.Name, p.ConsumesCounters = fmt.Sprintf("gpu-%d-half-%d", i, half), takes(set, "40Gi")
			devices = append(devices, p)
		}
	}
	return devices, counters
}

// Matching restricts a request of devices by an expression.
func Matching(text string) func(*resourcev1.ExactDeviceRequest) {
	return func(r *resourcev1.ExactDeviceRequest) {
		r.Selectors = append(r.Selectors, Selectors(text)...)
	}
}

// Selectors select devices by an expression.
func Selectors(text string) []resourcev1.DeviceSelector {
	return []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: text}}}
}

// OfMemory has a request of devices take a part of their memory.
func OfMemory(gib int) func(*resourcev1.ExactDeviceRequest) {
	return func(r *resourcev1.ExactDeviceRequest) {
		r.Capacity = &resourcev1.CapacityRequirements{
			Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(fmt.Sprint(gib, "Gi"))},
		}
	}
}

// Request asks for n devices of a class, with further conditions.
func Request(name, class string, n int64, change ...func(*resourcev1.ExactDeviceRequest)) resourcev1.DeviceRequest {
	r := &resourcev1.ExactDeviceRequest{
		DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: n,
	}
	for _, c := range change {
		c(r)
	}
	return resourcev1.DeviceRequest{Name: name, Exactly: r}
}

// ClaimOf makes a claim of the default namespace, which has its name for a UID.
func ClaimOf(name string, requests ...resourcev1.DeviceRequest) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault, UID: types.UID(name)},
		Spec:       resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: requests}},
	}
}

// Allocate gives a claim devices of a node's pool.
func Allocate(claim *resourcev1.ResourceClaim, driver, node string, devices ...string) *resourcev1.ResourceClaim {
	claim.Status.Allocation = &resourcev1.AllocationResult{}
	for _, d := range devices {
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results,
			resourcev1.DeviceRequestAllocationResult{Request: "gpus", Driver: driver, Pool: node, Device: d})
	}
	return claim
}

// UseClaim has a pod use a claim of its namespace.
func UseClaim(pod *v1.Pod, claim string) *v1.Pod {
	pod.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpus", ResourceClaimName: &claim}}
	pod.Spec.Containers[0].Resources.Claims = []v1.ResourceClaim{{Name: "gpus"}} //nolint:forbidigo // it writes
	return pod
}
