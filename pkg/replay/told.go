package replay

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/replay/replayed"
)

// toldStarts compares the starts that gangs were told first with when they started. What is told is in the status of
// the PodGroup, as users see it, in whole seconds.
type toldStarts struct {
	first  map[types.NamespacedName]*schedulingv1alpha1.PodGroupEstimatedStart
	errors []time.Duration
	within int
}

// see takes note of the first start that a gang is told.
func (t *toldStarts) see(group *unstructured.Unstructured) {
	key := types.NamespacedName{Namespace: group.GetNamespace(), Name: group.GetName()}
	found, told, err := unstructured.NestedMap(group.Object, "status", "estimatedStart")
	if _, known := t.first[key]; known || !told || err != nil {
		return
	}
	start := &schedulingv1alpha1.PodGroupEstimatedStart{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found, start); err != nil {
		return
	}
	if t.first == nil {
		t.first = map[types.NamespacedName]*schedulingv1alpha1.PodGroupEstimatedStart{}
	}
	t.first[key] = start
}

// started compares it.
func (t *toldStarts) started(key types.NamespacedName, now time.Time) {
	told := t.first[key]
	if told == nil {
		return
	}
	delete(t.first, key)
	now = now.Truncate(time.Second)
	t.errors = append(t.errors, now.Sub(told.Time.Time).Abs())
	if !now.Before(told.Earliest.Time) && !now.After(told.Latest.Time) {
		t.within++
	}
}

func (t *toldStarts) result() replayed.ToldStarts {
	return replayed.ToldStarts{Within: t.within, Error: summarize(t.errors)}
}
