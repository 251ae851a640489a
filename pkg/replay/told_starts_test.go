package replay

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/replay/replayed"
)

func TestToldStartsAreComparedWithWhatWasToldFirst(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)
	group := func(name string, minutes ...int) *unstructured.Unstructured {
		told := map[string]any{}
		for i, field := range []string{"earliest", "time", "latest"} {
			told[field] = start.Add(time.Duration(minutes[i]) * time.Minute).Format(time.RFC3339)
		}
		g := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"estimatedStart": told}}}
		g.SetNamespace("ns")
		g.SetName(name)
		return g
	}
	var told toldStarts
	told.see(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "ns",
		"name": "no"}}})
	told.see(group("a", 5, 10, 20))
	told.see(group("a", 50, 60, 70))
	told.see(group("b", 5, 10, 20))
	told.see(group("waits", 5, 10, 20))
	for name, minutes := range map[string]int{"a": 20, "b": 30, "no": 1} {
		for range 2 {
			told.started(types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: name}, start)
			told.started(types.NamespacedName{Namespace: "ns", Name: name},
				start.Add(time.Duration(minutes)*time.Minute+time.Millisecond))
		}
	}
	want := replayed.ToldStarts{Within: 1, Error: replayed.Waits{Count: 2, Mean: 900, P50: 600, P95: 1200, Max: 1200}}
	if diff := cmp.Diff(want, told.result()); diff != "" {
		t.Errorf("told starts (-want +got):\n%s", diff)
	}
}
