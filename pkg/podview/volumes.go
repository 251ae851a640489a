package podview

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/ephemeral"
	storagevolume "k8s.io/component-helpers/storage/volume"
)

// VolumeClaims returns the names of the PersistentVolumeClaims of the pod's volumes.
func VolumeClaims(pod *v1.Pod) []string {
	var names []string
	for i := range pod.Spec.Volumes {
		switch v := &pod.Spec.Volumes[i]; {
		case v.PersistentVolumeClaim != nil:
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			names = append(names, ephemeral.VolumeClaimName(pod, v))
		}
	}
	return names
}

// VolumesBound reports whether all PersistentVolumeClaims of the pod are bound, so that the scheduler has nothing to
// choose or to write. claim returns a claim of the pod's namespace.
func VolumesBound(pod *v1.Pod, claim func(name string) (*v1.PersistentVolumeClaim, error)) bool {
	for _, name := range VolumeClaims(pod) {
		claim, err := claim(name)
		if err != nil || claim.Spec.VolumeName == "" ||
			!metav1.HasAnnotation(claim.ObjectMeta, storagevolume.AnnBindCompleted) {
			return false
		}
	}
	return true
}
