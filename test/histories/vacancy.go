package main

import (
	"cmp"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/histories/history"
	"berth.dev/berth/test/invariants"
)

var slicesOfDevices = schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceslices"}

// vacancy is what a node has left, by the objects alone. It errs on one side: what it takes in fits.
type vacancy struct {
	node *v1.Node
	// amounts are in thousandths.
	amounts map[v1.ResourceName]int64
	// gpus are the thousandths left of each GPU that the scheduler hands out, claimable the devices that no claim has.
	gpus      []int
	claimable int64
	// failing is set if the node offers some of its GPUs, but not all: members of gangs are kept off it.
	failing bool
	// doubtful is set if it is not known what the GPUs are used for.
	doubtful bool
	// volumes is how many volumes no claim has.
	volumes int
	// port is set if a pod has the node's port, apart if one is there that must be apart from its like.
	port, apart bool
	// spread is how many pods it has of those that are spread together. uneven is set if that is not to be relied on.
	spread map[string]int
	uneven bool
	// nominated are pods on their way to the node.
	nominated []*v1.Pod
}

// vacancies returns what each node has left, or would have if some pods were gone.
func (w *world) vacancies(gone func(*v1.Pod) bool) []*vacancy {
	claimed := map[string]int64{}
	for _, obj := range w.api.List(claims) {
		if claim := obj.(*resourcev1.ResourceClaim); claim.Status.Allocation != nil {
			for _, device := range claim.Status.Allocation.Devices.Results {
				claimed[device.Pool]++
			}
		}
	}
	byName := map[string]*vacancy{}
	var all []*vacancy
	for _, obj := range w.api.List(nodes) {
		v := newVacancy(obj.(*v1.Node))
		if slice, ok := w.api.Get(slicesOfDevices, types.NamespacedName{Name: v.node.Name}).(*resourcev1.ResourceSlice); ok {
			v.claimable = int64(len(slice.Spec.Devices)) - claimed[v.node.Name]
		}
		byName[v.node.Name] = v
		all = append(all, v)
	}
	for _, obj := range w.api.List(volumes) {
		pv := obj.(*v1.PersistentVolume)
		if node := byName[pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0]]; node != nil &&
			pv.Spec.ClaimRef == nil {
			node.volumes++
		}
	}
	for _, obj := range w.api.List(pods) {
		pod := obj.(*v1.Pod)
		switch v, on := byName[pod.Spec.NodeName], byName[pod.Status.NominatedNodeName]; {
		case podview.Finished(pod) || gone(pod):
		case v != nil:
			v.add(pod)
		case pod.Spec.NodeName == "" && on != nil:
			on.nominated = append(on.nominated, pod)
		}
	}
	slices.SortFunc(all, func(a, b *vacancy) int { return cmp.Compare(a.node.Name, b.node.Name) })
	return all
}

func newVacancy(node *v1.Node) *vacancy {
	v := &vacancy{node: node, amounts: map[v1.ResourceName]int64{}, spread: map[string]int{}}
	for name, amount := range node.Status.Allocatable {
		v.amounts[name] = amount.MilliValue()
	}
	name := v1.ResourceName(gpuview.DefaultKeys().Resources[0])
	all := node.Status.Capacity[name]
	v.failing = 0 < v.amounts[name] && v.amounts[name] < all.MilliValue()
	if node.Labels[wellknown.GPUModeKey] == history.SharedMode {
		amount := node.Status.Capacity[name]
		for range amount.Value() {
			v.gpus = append(v.gpus, gpu.WholeMilli)
		}
		// Which GPUs are missing is not said.
		v.doubtful = v.amounts[name] < amount.MilliValue()
	}
	return v
}

// add takes off what a pod on the node uses.
func (v *vacancy) add(pod *v1.Pod) {
	v.use(pod, -1)
	v.port = v.port || len(pod.Spec.Containers[0].Ports) > 0
	v.apart = v.apart || pod.Labels[history.ApartLabel] != ""
	if pod.DeletionTimestamp == nil {
		v.spread[pod.Labels[history.SpreadLabel]]++
	}
	keys := gpuview.DefaultKeys()
	asked, err := keys.PodGPURequest(pod)
	if err != nil || asked.Count == 0 || v.gpus == nil {
		return
	}
	grant, ok := gpuview.Granted(pod)
	v.doubtful = v.doubtful || !ok
	for _, device := range grant.Devices {
		if device < len(v.gpus) {
			v.gpus[device] -= grant.Share.Milli
		}
	}
}

func (v *vacancy) use(pod *v1.Pod, times int64) {
	for name, amount := range resource.PodRequests(pod, resource.PodResourcesOptions{}) {
		v.amounts[name] += times * amount.MilliValue()
	}
	v.amounts[v1.ResourcePods] += times * 1000
}

// take puts the pod on the node, one of all, if it fits, and reports whether it does.
func (v *vacancy) take(pod *v1.Pod, p *history.Pod, all []*vacancy) bool {
	if !v.admits(pod, p) || !v.even(pod, p, all) {
		return false
	}
	for name, amount := range resource.PodRequests(pod, resource.PodResourcesOptions{}) {
		if v.amounts[name] < amount.MilliValue() {
			return false
		}
	}
	if p.Port && v.port || p.Apart && v.apart || p.LocalVolume && v.volumes == 0 {
		return false
	}
	if v.amounts[v1.ResourcePods] < 1000 || v.claimable < p.ClaimedGPUs || !v.takeGPUs(p) {
		return false
	}
	v.claimable -= p.ClaimedGPUs
	if p.LocalVolume {
		v.volumes--
	}
	v.port, v.apart = v.port || p.Port, v.apart || p.Apart
	v.spread[pod.Labels[history.SpreadLabel]]++
	v.use(pod, -1)
	return true
}

// takeGPUs gives the pod devices of a node that hands them out by number, if it asks for some.
func (v *vacancy) takeGPUs(p *history.Pod) bool {
	count, each := p.GPUs, gpu.WholeMilli
	if p.MilliGPU > 0 {
		count, each = 1, p.MilliGPU
	}
	switch {
	case count == 0:
		return true
	case v.doubtful:
		return false
	case v.gpus == nil:
		return p.MilliGPU == 0 // the request for a resource tells
	}
	var chosen []int
	for i, left := range v.gpus {
		if left >= each && len(chosen) < count {
			chosen = append(chosen, i)
		}
	}
	if len(chosen) < count {
		return false
	}
	for _, i := range chosen {
		v.gpus[i] -= each
	}
	return true
}

// admits reports whether the pod may go to the node, whatever runs there.
func (v *vacancy) admits(pod *v1.Pod, p *history.Pod) bool {
	matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(v.node)
	_, tainted := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), v.node.Spec.Taints, pod.Spec.Tolerations,
		nil, false)
	mine := invariants.GangOf(pod)
	others := slices.ContainsFunc(v.nominated, func(other *v1.Pod) bool {
		return other.UID != pod.UID && (mine == "" || invariants.GangOf(other) != mine)
	})
	return err == nil && matches && !tainted && !others && !v.node.Spec.Unschedulable && (mine == "" || !v.failing) &&
		(p.VolumeZone == "" || p.VolumeZone == v.node.Labels[v1.LabelTopologyZone])
}

// clone is a copy on which can be tried what fits.
func (v *vacancy) clone() *vacancy {
	c := *v
	c.amounts, c.spread = maps.Clone(v.amounts), maps.Clone(v.spread)
	c.gpus = slices.Clone(v.gpus)
	return &c
}
