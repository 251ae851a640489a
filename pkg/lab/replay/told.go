package replay

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
)

// estimatedStarts compares the first estimated start in the status of each PodGroup, in whole seconds, with the actual
// one.
type estimatedStarts struct {
	first  map[types.NamespacedName]time.Time
	errors []time.Duration
}

// observe keeps the first estimate of a gang.
func (s *estimatedStarts) observe(group *unstructured.Unstructured) {
	key := types.NamespacedName{Namespace: group.GetNamespace(), Name: group.GetName()}
	found, estimated, err := unstructured.NestedMap(group.Object, "status", "estimatedStart")
	if _, known := s.first[key]; known || !estimated || err != nil {
		return
	}
	start := schedulingv1alpha1.PodGroupEstimatedStart{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found, &start); err != nil {
		return
	}
	if s.first == nil {
		s.first = map[types.NamespacedName]time.Time{}
	}
	s.first[key] = start.Time.Time
}

// started compares the estimate of a gang, if there is one, with its start.
func (s *estimatedStarts) started(key types.NamespacedName, now time.Time) {
	if start, estimated := s.first[key]; estimated {
		delete(s.first, key)
		s.errors = append(s.errors, now.Truncate(time.Second).Sub(start).Abs())
	}
}
