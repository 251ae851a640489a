package advise

import (
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/podview"
)

// devices are those of claims that were made for pods. Preemption does not know what a node would accept without
// allocated claims. So for preemption such claims are replaced by an amount of a resource, the number of devices. The
// run of the plan, with the claims, shows whether these devices suffice.
type devices struct {
	claims map[key]*resourcev1.ResourceClaim
	// onNode are the devices of nodes, and drivers those of device classes, as far as allocations show.
	onNode  map[string]v1.ResourceList
	drivers map[string]string
}

func readDevices(objects []runtime.Object) *devices {
	d := &devices{claims: map[key]*resourcev1.ResourceClaim{}, onNode: map[string]v1.ResourceList{},
		drivers: map[string]string{}}
	for _, obj := range objects {
		switch obj := obj.(type) {
		case *resourcev1.ResourceSlice:
			if node := obj.Spec.NodeName; node != nil {
				if d.onNode[*node] == nil {
					d.onNode[*node] = v1.ResourceList{}
				}
				addDevices(d.onNode[*node], obj.Spec.Driver, len(obj.Spec.Devices))
			}
		case *resourcev1.ResourceClaim:
			d.claims[key{Namespace: obj.Namespace, Name: obj.Name}] = obj
			if obj.Status.Allocation == nil {
				continue
			}
			for _, r := range obj.Status.Allocation.Devices.Results {
				for _, asked := range obj.Spec.Devices.Requests {
					if asked.Exactly != nil && asked.Name == r.Request {
						d.drivers[asked.Exactly.DeviceClassName] = r.Driver
					}
				}
			}
		}
	}
	return d
}

// inPlaceOfClaims are the objects with amounts of devices instead of claims.
func (d *devices) inPlaceOfClaims(objects []runtime.Object) []runtime.Object {
	out := make([]runtime.Object, len(objects))
	for i, obj := range objects {
		switch of := obj.(type) {
		case *v1.Pod:
			obj = d.inPlaceOfClaim(of)
		case *v1.Node:
			if has := d.onNode[of.Name]; has != nil {
				obj = podview.Offering(of, has)
			}
		}
		out[i] = obj
	}
	return out
}

// inPlaceOfClaim is the pod with amounts of devices instead of the claims that were made for it.
func (d *devices) inPlaceOfClaim(pod *v1.Pod) *v1.Pod {
	if total := d.of(pod); total != nil {
		return podview.InPlaceOfClaims(pod, total)
	}
	return pod
}

// of are the allocated or requested devices of the claims that were made for a pod; nil if it has no such claim.
func (d *devices) of(pod *v1.Pod) (total v1.ResourceList) {
	for _, s := range pod.Status.ResourceClaimStatuses {
		if s.ResourceClaimName == nil {
			continue
		}
		claim := d.claims[key{Namespace: pod.Namespace, Name: *s.ResourceClaimName}]
		if claim == nil {
			continue
		}
		if total == nil {
			total = v1.ResourceList{}
		}
		if claim.Status.Allocation != nil {
			for _, r := range claim.Status.Allocation.Devices.Results {
				addDevices(total, r.Driver, 1)
			}
			continue
		}
		for _, asked := range claim.Spec.Devices.Requests {
			if asked.Exactly != nil {
				if driver := d.drivers[asked.Exactly.DeviceClassName]; driver != "" {
					addDevices(total, driver, int(asked.Exactly.Count))
				}
			}
		}
	}
	return total
}

// addDevices counts devices of a driver as a resource.
func addDevices(to v1.ResourceList, driver string, n int) {
	name := v1.ResourceName("advise.berth.dev/" + driver)
	sum := to[name]
	sum.Add(*resource.NewQuantity(int64(n), resource.DecimalSI))
	to[name] = sum
}
