package process

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"berth.dev/berth/pkg/podview"
)

// OpenReserve is implemented by plugins whose Reserve keeps nothing that the filters of other pods do not learn from
// the NodeInfo or AddPod. Any other plugin may keep something.
type OpenReserve interface{ ReservesOpenly() }

// stockOpenReserve are plugins of Kubernetes whose Reserve concerns only pods with claims or volumes.
var stockOpenReserve = []string{names.VolumeBinding, names.DynamicResources}

// findDependence fills in how the profile's plugins make pods depend on each other.
func (t *Traits) findDependence(profile framework.Framework) {
	plugins := map[string]fwk.EnqueueExtensions{}
	for _, plugin := range profile.EnqueueExtensions() {
		plugins[plugin.Name()] = plugin
	}
	enabled := profile.ListPlugins()
	for _, p := range enabled.Reserve.Enabled {
		if _, open := plugins[p.Name].(OpenReserve); !open && !slices.Contains(stockOpenReserve, p.Name) {
			t.HiddenReserve = true
		}
	}
	for _, p := range enabled.PreFilter.Enabled {
		plugin, ok := plugins[p.Name].(fwk.PreFilterPlugin)
		if ok && plugin.PreFilterExtensions() == nil {
			continue
		}
		t.readOthers = append(t.readOthers, p.Name)
		if _, filters := plugins[p.Name].(fwk.FilterPlugin); filters || !ok {
			t.filterByOthers = append(t.filterByOthers, p.Name)
		}
	}
}

// Reserves reports whether Reserve of the profile's plugins keeps something for the pod that its siblings do not see:
// devices of claims, volumes, or what an unknown plugin keeps.
func (t *Traits) Reserves(pod *v1.Pod) bool {
	return t.HiddenReserve || HasVolumes(pod) || t.Claims(pod)
}

// ReadsOthers reports whether a plugin that filters or scores the pod in this cycle looks at pods on other nodes.
func (t *Traits) ReadsOthers(state fwk.CycleState) bool { return anyRuns(t.readOthers, state) }

// FiltersByOthers reports whether a plugin that filters the pod in this cycle looks at pods on other nodes.
func (t *Traits) FiltersByOthers(state fwk.CycleState) bool { return anyRuns(t.filterByOthers, state) }

// anyRuns reports whether PreFilter has left one of the plugins to run.
func anyRuns(plugins []string, state fwk.CycleState) bool {
	return slices.ContainsFunc(plugins, func(name string) bool { return !state.GetSkipFilterPlugins().Has(name) })
}

// OrderMatters reports whether where the pod may go depends on the order in which its siblings take their nodes.
func (t *Traits) OrderMatters(pod *v1.Pod) bool {
	a := pod.Spec.Affinity
	return (a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil)) ||
		len(pod.Spec.TopologySpreadConstraints) > 0 || t.Reserves(pod)
}

// HasVolumes reports whether the pod has volumes with a PersistentVolumeClaim.
func HasVolumes(pod *v1.Pod) bool {
	return len(podview.VolumeClaims(pod)) > 0
}

// Claims reports whether devices are allocated to the pod by ResourceClaims: its own, or one for an extended resource.
func (t *Traits) Claims(pod *v1.Pod) bool {
	if len(pod.Spec.ResourceClaims) > 0 || t.profile == nil {
		return len(pod.Spec.ResourceClaims) > 0
	}
	for name := range podview.Requests(pod) {
		if Claimed(t.profile, name) {
			return true
		}
	}
	return false
}

// Claimed reports whether a DeviceClass serves the extended resource, so that nodes need not list it as allocatable.
func Claimed(profile framework.Framework, name v1.ResourceName) bool {
	dra := profile.SharedDRAManager()
	if dra == nil {
		return false
	}
	resolver := dra.DeviceClassResolver()
	return resolver != nil && resolver.GetDeviceClass(name) != nil
}
