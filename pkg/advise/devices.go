package advise

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"berth.dev/berth/pkg/podview"
)

// counts are numbers of devices by driver.
type counts map[string]int

// has says whether the counts hold others n times.
func (c counts) has(others counts, times int) bool {
	for driver, n := range others {
		if n*times > c[driver] {
			return false
		}
	}
	return true
}

// with are both counts together.
func (c counts) with(others counts) counts {
	sum := maps.Clone(c)
	if sum == nil {
		sum = counts{}
	}
	for driver, n := range others {
		sum[driver] += n
	}
	return sum
}

// devices is the account of the devices that claims have. Filters cannot say what a node would accept without claims
// that are allocated, so devices are counted instead, and the run of the plan shows whether these were the right ones.
type devices struct {
	world *world
	// free are those of a node that nothing has.
	free map[string]counts
	// drivers serve the classes, as far as allocations show.
	drivers map[string]string
}

func (w *world) devices() *devices {
	d := &devices{world: w, free: map[string]counts{}, drivers: map[string]string{}}
	type pool struct{ driver, name string }
	nodeOf := map[pool]string{}
	for _, obj := range w.api.List(sliceResource) {
		if s := obj.(*resourcev1.ResourceSlice); s.Spec.NodeName != nil {
			nodeOf[pool{s.Spec.Driver, s.Spec.Pool.Name}] = *s.Spec.NodeName
			if d.free[*s.Spec.NodeName] == nil {
				d.free[*s.Spec.NodeName] = counts{}
			}
			d.free[*s.Spec.NodeName][s.Spec.Driver] += len(s.Spec.Devices)
		}
	}
	for _, obj := range w.api.List(claimResource) {
		claim := obj.(*resourcev1.ResourceClaim)
		if claim.Status.Allocation == nil {
			continue
		}
		for _, r := range claim.Status.Allocation.Devices.Results {
			if free := d.free[nodeOf[pool{r.Driver, r.Pool}]]; free != nil {
				free[r.Driver]--
			}
			for _, asked := range claim.Spec.Devices.Requests {
				if asked.Exactly != nil && asked.Name == r.Request {
					d.drivers[asked.Exactly.DeviceClassName] = r.Driver
				}
			}
		}
	}
	return d
}

// of are the devices that the claims made for a pod have, or will have, and whether it has any such claim.
func (d *devices) of(pod *v1.Pod) (total counts, found bool) {
	total = counts{}
	for _, s := range pod.Status.ResourceClaimStatuses {
		if s.ResourceClaimName == nil {
			continue
		}
		claim, ok := d.world.api.Get(claimResource,
			key{Namespace: pod.Namespace, Name: *s.ResourceClaimName}).(*resourcev1.ResourceClaim)
		if !ok {
			continue
		}
		found = true
		if claim.Status.Allocation != nil {
			for _, r := range claim.Status.Allocation.Devices.Results {
				total[r.Driver]++
			}
			continue
		}
		for _, asked := range claim.Spec.Devices.Requests {
			if asked.Exactly != nil {
				if driver := d.drivers[asked.Exactly.DeviceClassName]; driver != "" {
					total[driver] += int(asked.Exactly.Count)
				}
			}
		}
	}
	return total, found
}

// withoutClaims is the pod without the claims that were made for it, and the devices that these need.
func (d *devices) withoutClaims(pod *v1.Pod) (*v1.Pod, counts) {
	need, found := d.of(pod)
	if !found {
		return pod, nil
	}
	return podview.WithoutMadeClaims(pod), need
}

// freed are the devices that units give back that leave a node.
func (d *devices) freed(node string, units []*unit) counts {
	total := counts{}
	for _, u := range units {
		for _, pod := range u.Pods {
			if has, _ := d.of(pod); pod.Spec.NodeName == node {
				total = total.with(has)
			}
		}
	}
	return total
}

func (c counts) String() string {
	text := ""
	for _, driver := range slices.Sorted(maps.Keys(c)) {
		text += fmt.Sprintf(" %s=%d", driver, c[driver])
	}
	return text
}
