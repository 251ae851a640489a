package replay

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
)

// toldStarts compares the starts that gangs were told first with when they started. What is told is in the status of
// the PodGroup, as users see it, in whole seconds.
type toldStarts struct {
	first  map[types.NamespacedName]time.Time
	errors []time.Duration
}

// see takes note of the first start that a gang is told.
func (t *toldStarts) see(group *unstructured.Unstructured) {
	key := types.NamespacedName{Namespace: group.GetNamespace(), Name: group.GetName()}
	found, told, err := unstructured.NestedMap(group.Object, "status", "estimatedStart")
	if _, known := t.first[key]; known || !told || err != nil {
		return
	}
	start := schedulingv1alpha1.PodGroupEstimatedStart{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found, &start); err != nil {
		return
	}
	if t.first == nil {
		t.first = map[types.NamespacedName]time.Time{}
	}
	t.first[key] = start.Time.Time
}

// started compares it.
func (t *toldStarts) started(key types.NamespacedName, now time.Time) {
	if start, told := t.first[key]; told {
		delete(t.first, key)
		t.errors = append(t.errors, now.Truncate(time.Second).Sub(start).Abs())
	}
}
