package gangview

import (
	v1 "k8s.io/api/core/v1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang/steps"
	"berth.dev/berth/pkg/wellknown"
)

// stepsOf reads by what steps a gang grows from its PodGroup, which may be nil, and else from a member.
func stepsOf(pg *schedulingv1alpha1.PodGroup, pod *v1.Pod) (steps.Size, *wellknown.BadValue) {
	object, value, found := "pod", "", false
	if pg != nil {
		object = "PodGroup " + pg.Name
		value, found = pg.Annotations[wellknown.GrowByKey]
	}
	if !found {
		if value, found = pod.Annotations[wellknown.GrowByKey]; !found {
			return 0, nil
		}
		object = "pod"
	}
	size, ok := steps.Parse(value)
	if !ok {
		return 0, &wellknown.BadValue{Object: object, Kind: "annotation", Key: wellknown.GrowByKey, Value: value,
			Allowed: steps.Allowed}
	}
	return size, nil
}
