package coscheduling

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// openReserve is implemented by plugins whose Reserve takes note of nothing that the filters of other pods do not see in the
// NodeInfo or hear by AddPod. Of other plugins it is not known what they keep.
type openReserve interface{ ReservesOpenly() }

// stockOpenReserve are plugins of Kubernetes whose Reserve concerns only pods with claims or volumes.
var stockOpenReserve = []string{names.VolumeBinding, names.DynamicResources}

// findDependence finds out how the profile's plugins make pods depend on each other.
func (f *stockFilters) findDependence(profile framework.Framework) {
	plugins := map[string]fwk.EnqueueExtensions{}
	for _, plugin := range profile.EnqueueExtensions() {
		plugins[plugin.Name()] = plugin
	}
	enabled := profile.ListPlugins()
	for _, p := range enabled.Reserve.Enabled {
		if _, open := plugins[p.Name].(openReserve); !open && !slices.Contains(stockOpenReserve, p.Name) {
			f.hiddenReserve = true
		}
	}
	for _, p := range enabled.PreFilter.Enabled {
		if plugin, ok := plugins[p.Name].(fwk.PreFilterPlugin); !ok || plugin.PreFilterExtensions() != nil {
			f.tellsOthers = append(f.tellsOthers, p.Name)
		}
	}
}

// reserves reports whether Reserve of the profile's plugins takes note of the pod where its siblings would not see it
// otherwise: devices of claims, volumes, or whatever a plugin keeps of which nothing is known.
func (f *stockFilters) reserves(pod *v1.Pod) bool {
	return f.hiddenReserve || hasVolumes(pod) || f.claims(pod)
}

// readsOthers reports whether a plugin that filters the pod looks at where other pods are placed, beyond what the node shows.
func (f *stockFilters) readsOthers(state fwk.CycleState) bool {
	return slices.ContainsFunc(f.tellsOthers, func(name string) bool { return !state.GetSkipFilterPlugins().Has(name) })
}

// orderMatters reports whether where the pod may go depends on the order in which its siblings take their nodes.
func (f *stockFilters) orderMatters(pod *v1.Pod) bool {
	a := pod.Spec.Affinity
	return (a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil)) || len(pod.Spec.TopologySpreadConstraints) > 0 || f.reserves(pod)
}

func hasVolumes(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v v1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil })
}

// claimsDevices reports whether devices are allocated to the pod by claims, its own or one that serves an extended resource.
func claimsDevices(profile framework.Framework, pod *v1.Pod) bool {
	if len(pod.Spec.ResourceClaims) > 0 {
		return true
	}
	for name := range resource.PodRequests(pod, resource.PodResourcesOptions{}) {
		if claimed(profile, name) {
			return true
		}
	}
	return false
}

// claimed reports whether a device class hands the resource out, so that what nodes offer of it is not all there is.
func claimed(profile framework.Framework, name v1.ResourceName) bool {
	dra := profile.SharedDRAManager()
	if dra == nil {
		return false
	}
	resolver := dra.DeviceClassResolver()
	return resolver != nil && resolver.GetDeviceClass(name) != nil
}
