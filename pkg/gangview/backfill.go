package gangview

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

// backfillAllowed is the one value of BackfillKey.
const backfillAllowed = "allow"

// Backfill reads whether a pod, or a PodGroup for its pods, says that they may run in capacity that is kept for a gang.
func Backfill(of metav1.Object) (bool, *wellknown.BadValue) {
	value, ok := of.GetAnnotations()[wellknown.BackfillKey]
	if ok && value != backfillAllowed {
		return false, podview.BadAnnotation(of, wellknown.BackfillKey, `"`+backfillAllowed+`"`)
	}
	return ok, nil
}

// MayBackfill reports whether the pod may run in capacity that is kept for a gang: by its own word or by that of its
// PodGroup, which may be nil. A bad value allows nothing.
func MayBackfill(pg *schedulingv1alpha1.PodGroup, pod *v1.Pod) bool {
	may, _ := Backfill(pod)
	if !may && pg != nil {
		may, _ = Backfill(pg)
	}
	return may
}
