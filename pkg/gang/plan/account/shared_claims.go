package account

import (
	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// SharedClaims counts how many members of a gang use a claim, for devices or for a volume, that was created by hand. If
// several do, its allocation has to be written before the second member can be scheduled: the scheduler lets no pod use
// what is being allocated to another one, and binds a volume for one pod at a time.
type SharedClaims map[sharedClaim]int

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

// Count counts the claims of a member.
func (c SharedClaims) Count(pod *v1.Pod) {
	for _, claim := range sharedClaimsOf(pod) {
		c[claim]++
	}
}

// First reports whether the pod, which is being placed, is the first of several to use a claim without an allocation or
// volume.
func (c SharedClaims) First(devices fwk.SharedDRAManager, volumes *Storage, pod *v1.Pod) bool {
	found := false
	for _, claim := range sharedClaimsOf(pod) {
		if c[claim] > 1 && !given(devices, volumes, claim) {
			found = true
		}
		c[claim] = 0
	}
	return found
}

// given reports whether devices are allocated to the claim, or a volume is bound to it.
func given(devices fwk.SharedDRAManager, volumes *Storage, claim sharedClaim) bool {
	if claim.volume {
		object, err := volumes.claims.PersistentVolumeClaims(claim.namespace).Get(claim.name)
		return err == nil && object.Spec.VolumeName != ""
	}
	object, err := devices.ResourceClaims().Get(claim.namespace, claim.name)
	return err == nil && object.Status.Allocation != nil
}
