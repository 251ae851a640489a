package gangview

import (
	v1 "k8s.io/api/core/v1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang/steps"
	"berth.dev/berth/pkg/wellknown"
)

// stepsOf reads by what steps a gang grows from its PodGroup, which may be nil, and else from a member.
func stepsOf(pg *schedulingv1alpha1.PodGroup, pod *v1.Pod) (steps.Size, *wellknown.BadValue) {
	object, value, found := annotation(pg, pod, wellknown.GrowByKey)
	if !found {
		return "", nil
	}
	size, ok := steps.Parse(value)
	switch {
	case ok && (!size.Named() || object != "pod"):
		return size, nil
	case object == "pod": // which has no minimum by role
		return "", badSteps(object, value, steps.AllowedPlain)
	}
	return "", badSteps(object, value, steps.Allowed)
}

func badSteps(object, value, allowed string) *wellknown.BadValue {
	return &wellknown.BadValue{Object: object, Kind: "annotation", Key: wellknown.GrowByKey, Value: value,
		Allowed: allowed}
}
