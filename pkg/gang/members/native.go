package members

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	compositelisters "k8s.io/client-go/listers/scheduling/v1alpha3"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1beta1"
	"k8s.io/kubernetes/pkg/features"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/gang/read/grouptree"
)

// CorePlansNative reports whether the scheduler's core plans native groups. Else they are gangs like others.
func CorePlansNative() bool { return utilfeature.DefaultFeatureGate.Enabled(features.GenericWorkload) }

// NativeGroups knows which groups of the scheduler's core (spec.schedulingGroup) may be disrupted only as a whole.
type NativeGroups struct {
	// lister is nil where the feature is off, and composites where that of groups of groups is.
	lister     schedulinglisters.PodGroupLister
	composites compositelisters.CompositePodGroupLister
}

// NewNativeGroups asks for the informers only where the features are on: one for an API that is not served never syncs.
func NewNativeGroups(factory informers.SharedInformerFactory) NativeGroups {
	if !CorePlansNative() {
		return NativeGroups{}
	}
	n := NativeGroups{lister: factory.Scheduling().V1beta1().PodGroups().Lister()}
	if utilfeature.DefaultFeatureGate.Enabled(features.CompositePodGroup) {
		n.composites = factory.Scheduling().V1alpha3().CompositePodGroups().Lister()
	}
	return n
}

// nativePrefix keeps the names of native groups apart from those of ours; no object's name has a space.
const nativePrefix = "native group "

// UnitOf returns the topmost native group that the pod can only be evicted with, or the zero ID.
func (n NativeGroups) UnitOf(pod *v1.Pod) gang.ID {
	name := read.NativeName(pod)
	if n.lister == nil || name == "" {
		return gang.ID{}
	}
	pg, err := n.lister.PodGroups(pod.Namespace).Get(name)
	if err != nil {
		return gang.ID{}
	}
	unit := ""
	if mode := pg.Spec.DisruptionMode; mode != nil && mode.All != nil {
		unit = pg.Name
	}
	parent := pg.Spec.ParentCompositePodGroupName
	for depth := 1; depth < grouptree.MaxDepth && parent != nil && n.composites != nil; depth++ {
		of, err := n.composites.CompositePodGroups(pod.Namespace).Get(*parent)
		if err != nil {
			break
		}
		if mode := of.Spec.DisruptionMode; mode != nil && mode.All != nil {
			unit = "of groups " + of.Name
		}
		parent = of.Spec.ParentCompositePodGroupName
	}
	if unit == "" {
		return gang.ID{}
	}
	return gang.ID{Namespace: pod.Namespace, Name: nativePrefix + unit}
}

// IsUnit reports whether the ID is one that UnitOf returned.
func (NativeGroups) IsUnit(id gang.ID) bool { return strings.HasPrefix(id.Name, nativePrefix) }
