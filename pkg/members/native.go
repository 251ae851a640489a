package members

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1beta1"
	"k8s.io/kubernetes/pkg/features"

	"berth.dev/berth/pkg/gang"
)

// CorePlansNative reports whether the scheduler's core plans native groups. Else they are gangs like others.
func CorePlansNative() bool { return utilfeature.DefaultFeatureGate.Enabled(features.GenericWorkload) }

// NativeGroups knows which groups of the scheduler's core (spec.schedulingGroup) may be disrupted only as a whole.
type NativeGroups struct {
	// lister is nil where the feature is off.
	lister schedulinglisters.PodGroupLister
}

// NewNativeGroups asks for the informer only where the feature is on: one for an API that is not served never syncs.
func NewNativeGroups(factory informers.SharedInformerFactory) NativeGroups {
	if !CorePlansNative() {
		return NativeGroups{}
	}
	return NativeGroups{lister: factory.Scheduling().V1beta1().PodGroups().Lister()}
}

// nativePrefix keeps the names of native groups apart from those of ours; no object's name has a space.
const nativePrefix = "native group "

// UnitOf returns the native group that the pod can only be evicted with, or the zero ID.
func (n NativeGroups) UnitOf(pod *v1.Pod) gang.ID {
	if n.lister == nil || pod.Spec.SchedulingGroup == nil || pod.Spec.SchedulingGroup.PodGroupName == nil {
		return gang.ID{}
	}
	pg, err := n.lister.PodGroups(pod.Namespace).Get(*pod.Spec.SchedulingGroup.PodGroupName)
	if err != nil || pg.Spec.DisruptionMode == nil || pg.Spec.DisruptionMode.All == nil {
		return gang.ID{}
	}
	return gang.ID{Namespace: pod.Namespace, Name: nativePrefix + pg.Name}
}

// IsUnit reports whether the ID is one that UnitOf returned.
func (NativeGroups) IsUnit(id gang.ID) bool { return strings.HasPrefix(id.Name, nativePrefix) }
