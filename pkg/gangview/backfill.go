package gangview

import (
	v1 "k8s.io/api/core/v1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/wellknown"
)

// backfillAllowed is the one value of BackfillKey.
const backfillAllowed = "allow"

// PodBackfill reads whether the pod says that it may run in capacity that is kept for a gang.
func PodBackfill(pod *v1.Pod) (bool, *wellknown.BadValue) { return backfill("pod", pod.Annotations) }

func backfill(object string, annotations map[string]string) (bool, *wellknown.BadValue) {
	value, ok := annotations[wellknown.BackfillKey]
	if ok && value != backfillAllowed {
		return false, &wellknown.BadValue{Object: object, Kind: "annotation", Key: wellknown.BackfillKey, Value: value,
			Allowed: `"` + backfillAllowed + `"`}
	}
	return ok, nil
}

// MayBackfill reports whether the pod may run in capacity that is kept for a gang: by its own word or by that of its
// PodGroup, which may be nil. A bad value allows nothing.
func MayBackfill(pg *schedulingv1alpha1.PodGroup, pod *v1.Pod) bool {
	if may, _ := PodBackfill(pod); may {
		return true
	}
	if pg == nil {
		return false
	}
	may, _ := backfill("PodGroup "+pg.Name, pg.Annotations)
	return may
}
