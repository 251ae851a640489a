package replay

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/lab/trace"
)

func TestPoolsOfAddressesOfADumpHold(t *testing.T) {
	t.Parallel()
	in := NewInput("dump", []trace.Node{{Name: "a", CPUMilli: 8000, MemoryMiB: 16384}}, nil)
	for i := range 3 {
		job := trace.Job{Name: fmt.Sprint("pod-", i), Pods: 1, CPUMilli: 1000, MemoryMiB: 512}
		pod := podObject(&job, 0, 0, "berth-scheduler", wholeGPUs, usualKeys())
		pod.Annotations = map[string]string{"berth.dev/ip-pool": "small"}
		in.Objects = append(in.Objects, pod)
	}
	in.Objects = append(in.Objects, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "berth.dev/v1alpha1",
		"kind":     "IPPool",
		"metadata": map[string]any{"name": "small"},
		"spec":     map[string]any{"subnets": []any{map[string]any{"ranges": []any{"10.0.0.1-10.0.0.2"}}}}}})
	r := mustRun(t, shipped, in, Options{Mode: replayed.VirtualTime})
	if r.Placed != 2 || r.Pending != 1 {
		t.Errorf("%d pods placed, %d pending; want 2 and 1", r.Placed, r.Pending)
	}
	if len(r.PendingByReason) != 1 || !strings.Contains(r.PendingByReason[0].Reason, "pool small has no free address") {
		t.Errorf("pods are pending because of %v, want the pool that is empty", r.PendingByReason)
	}
}
