package coscheduling

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/component-helpers/resource"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// This file tells in what members of a gang depend on each other beyond the room on a node.

// reserves reports whether Reserve of the profile's plugins takes note of the pod where its siblings would not see it
// otherwise: devices of claims, volumes, or whatever a plugin that is not ours or Kubernetes' own keeps.
func reserves(profile framework.Framework, pod *v1.Pod) bool {
	return claimsDevices(profile, pod) || hasVolumes(pod) || !onlyTransparent(profile)
}

// onlyTransparent reports whether all plugins of the profile that reserve something are known.
func onlyTransparent(profile framework.Framework) bool {
	return !slices.ContainsFunc(profile.ListPlugins().Reserve.Enabled, func(p config.Plugin) bool { return !slices.Contains(transparent, p.Name) })
}

// transparent are the plugins whose Reserve concerns only pods with claims or volumes, or what NodeInfo or AddPod shows as well.
var transparent = []string{names.VolumeBinding, names.DynamicResources, Name, "GPUAware", "CostOptimized", "NetworkTopology", "PlacementPolicy",
	"IPReservation"}

// heedsOthers reports whether a plugin that filters the pod looks at where its siblings are placed, beyond what the node shows.
func heedsOthers(profile framework.Framework, state fwk.CycleState) bool {
	return slices.ContainsFunc(profile.ListPlugins().PreFilter.Enabled, func(p config.Plugin) bool {
		return !slices.Contains(heedless, p.Name) && !state.GetSkipFilterPlugins().Has(p.Name)
	})
}

// heedless are the plugins whose PreFilter has no extensions by which it is told of other pods.
var heedless = []string{names.NodePorts, names.NodeResourcesFit, names.NodeAffinity, names.TaintToleration, names.VolumeBinding, names.VolumeZone,
	names.NodeVolumeLimits, names.DynamicResources, names.NodeDeclaredFeatures, Name, "GPUAware", "CostOptimized", "SLAAware"}

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

func hasVolumes(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v v1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil })
}

// orderMatters reports whether where the pod may go depends on the order in which its siblings take their nodes.
func orderMatters(profile framework.Framework, pod *v1.Pod) bool {
	a := pod.Spec.Affinity
	return (a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil)) || len(pod.Spec.TopologySpreadConstraints) > 0 || reserves(profile, pod)
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

// sharedClaims counts how many members of a gang use a claim, for devices or for a volume, that was made by hand. What one that
// several use is given has to be written before the second of them can be scheduled, because the scheduler lets no pod use
// what is being allocated to another one, and binds a volume for one pod at a time.
type sharedClaims map[sharedClaim]int

type sharedClaim struct {
	volume          bool
	namespace, name string
}

func sharedClaimsOf(pod *v1.Pod) []sharedClaim {
	var claims []sharedClaim
	for _, c := range pod.Spec.ResourceClaims {
		if c.ResourceClaimName != nil {
			claims = append(claims, sharedClaim{namespace: pod.Namespace, name: *c.ResourceClaimName})
		}
	}
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			claims = append(claims, sharedClaim{volume: true, namespace: pod.Namespace, name: v.PersistentVolumeClaim.ClaimName})
		}
	}
	return claims
}

func (c sharedClaims) count(pod *v1.Pod) {
	for _, claim := range sharedClaimsOf(pod) {
		c[claim]++
	}
}

// first reports whether the pod, which is being placed, is the first of several to use a claim that nothing was given to yet.
func (c sharedClaims) first(profile framework.Framework, volumes corelisters.PersistentVolumeClaimLister, pod *v1.Pod) bool {
	found := false
	for _, claim := range sharedClaimsOf(pod) {
		if c[claim] > 1 && !given(profile, volumes, claim) {
			found = true
		}
		c[claim] = 0
	}
	return found
}

// given reports whether devices are allocated to the claim, or a volume is bound to it.
func given(profile framework.Framework, volumes corelisters.PersistentVolumeClaimLister, claim sharedClaim) bool {
	if claim.volume {
		object, err := volumes.PersistentVolumeClaims(claim.namespace).Get(claim.name)
		return err == nil && object.Spec.VolumeName != ""
	}
	object, err := profile.SharedDRAManager().ResourceClaims().Get(claim.namespace, claim.name)
	return err == nil && object.Status.Allocation != nil
}
