package gpuaware

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/wellknown"
)

// TestPodsThatAreGoneLeaveNoMemory creates pods with as much text as an annotation holds, looks for nodes for them,
// lets some run and deletes all.
func TestPodsThatAreGoneLeaveNoMemory(t *testing.T) { //nolint:paralleltest // it measures the heap of the whole process
	const pods, text, leave = 100, 240_000, 2 << 20
	h := newHarness(t, alone(defaultArgs()), gpuNodeObject("n", 8, "Tesla-T4"))
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range pods {
		long := fmt.Sprintf("m%d-%s", i, strings.Repeat("x", text))
		list := fmt.Sprintf("m%d-%s", i, strings.Repeat("x|", text/2)+"x")
		for n, annotations := range []strs{
			{wellknown.GPUModelsKey: long}, {wellknown.GPUModelsKey: list}, {"alibabacloud.com/gpu-card-model": long},
			{"berth.dev/gpu-assigned": long, "gpu-fraction": "0.5"}, {"hami.io/vgpu-devices-allocated": long},
		} {
			pod := podObject(fmt.Sprint("p", i, "-", n), strs{"cpu": fmt.Sprint(i), "nvidia.com/gpu": "1"}, annotations)
			if n >= 3 {
				pod.Spec.Containers[0].Resources.Requests = v1.ResourceList{}
			}
			_, _, _ = h.evaluate(t, h, pod)
			_, _, _ = h.evaluate(t, h, pod)
		}
	}
	if grown := int64(heap()) - int64(before); grown > leave {
		t.Errorf("%d pods left %d KiB of heap, want at most %d", 5*pods, grown>>10, leave>>10)
	}
	runtime.KeepAlive(h)
}
