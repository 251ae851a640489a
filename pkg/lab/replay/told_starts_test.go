package replay

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/test/harness/assert"
)

func TestStartsAreComparedWithTheFirstEstimate(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	group := func(name string, minutes int) *unstructured.Unstructured {
		told := map[string]any{"time": start.Add(time.Duration(minutes) * time.Minute).Format(time.RFC3339)}
		g := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"estimatedStart": told}}}
		g.SetNamespace("ns")
		g.SetName(name)
		return g
	}
	var starts estimatedStarts
	starts.observe(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "ns",
		"name": "no"}}})
	starts.observe(group("a", 10))
	starts.observe(group("a", 60))
	starts.observe(group("b", 10))
	starts.observe(group("waits", 10))
	for name, minutes := range map[string]int{"a": 20, "b": 30, "no": 1} {
		for range 2 {
			starts.started(types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: name}, start)
			starts.started(types.NamespacedName{Namespace: "ns", Name: name},
				start.Add(time.Duration(minutes)*time.Minute+time.Millisecond))
		}
	}
	want := replayed.Waits{Count: 2, Mean: 900, P50: 600, P95: 1200, Max: 1200}
	assert.Equal(t, "estimated starts", want, summarize(starts.errors))
}
