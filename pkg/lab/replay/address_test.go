package replay

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/lab/trace"
)

// A dump has two addresses or licenses. Of three pods that ask for one, one stays pending.
func TestPoolsAndPoliciesOfADumpHold(t *testing.T) {
	t.Parallel()
	for annotation, tc := range map[string]struct {
		value, kind string
		spec        map[string]any
		reason      string
	}{
		"berth.dev/ip-pool": {"small", "IPPool",
			map[string]any{"subnets": []any{map[string]any{"ranges": []any{"10.0.0.1-10.0.0.2"}}}},
			"pool small has no free address"},
		"berth.dev/licenses": {"matlab", "PlacementPolicy",
			map[string]any{"licenses": []any{map[string]any{"name": "matlab", "count": int64(2)}}}, "license matlab"},
	} {
		t.Run(tc.kind, func(t *testing.T) {
			t.Parallel()
			in := NewInput("dump", []trace.Node{{Name: "a", CPUMilli: 8000, MemoryMiB: 16384}}, nil)
			for i := range 3 {
				job := trace.Job{Name: fmt.Sprint("pod-", i), Pods: 1, CPUMilli: 1000, MemoryMiB: 512}
				pod := podObject(&job, 0, 0, "berth-scheduler", false, usualKeys())
				pod.Annotations = map[string]string{annotation: tc.value}
				in.Objects = append(in.Objects, pod)
			}
			in.Objects = append(in.Objects, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "berth.dev/v1alpha1", "kind": tc.kind, "metadata": map[string]any{"name": "small"}, "spec": tc.spec}})
			r := mustRun(t, shipped, in, Options{Mode: replayed.VirtualTime})
			if r.Placed != 2 || r.Pending != 1 || len(r.PendingByReason) != 1 ||
				!strings.Contains(r.PendingByReason[0].Reason, tc.reason) {
				t.Errorf("%d pods placed, %d pending because of %v; want 2, and 1 because %s", r.Placed, r.Pending,
					r.PendingByReason, tc.reason)
			}
		})
	}
}
