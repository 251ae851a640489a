package live

import (
	"context"
	"fmt"

	"berth.dev/berth/hack/bench/rig"
)

// Memory is what a scheduler holds.
type Memory struct {
	// Resident is what the kernel counts, now and at most so far. The Go runtime gives freed memory back late.
	ResidentMiB     float64 `json:"residentMiB"`
	PeakResidentMiB float64 `json:"peakResidentMiB"`
	// Heap is what lives on the heap.
	HeapMiB float64 `json:"heapMiB"`
}

// Memory has the scheduler collect its garbage, and reads what is left.
func (p *Process) Memory(ctx context.Context) (m Memory, err error) {
	// What is pooled survives the first collection.
	for range 2 {
		if _, err := p.get(ctx, "/debug/pprof/heap?gc=1"); err != nil {
			return m, fmt.Errorf("collecting the scheduler's garbage: %w", err)
		}
	}
	metrics, err := p.Metrics(ctx)
	if err != nil {
		return m, err
	}
	resident, err := rig.ResidentBytes(p.PID())
	if err != nil {
		return m, err
	}
	peak, err := rig.PeakResidentBytes(p.PID())
	mib := func(bytes float64) float64 { return bytes / (1 << 20) }
	return Memory{mib(float64(resident)), mib(float64(peak)), mib(metrics.Sum("go_memstats_heap_alloc_bytes", ""))}, err
}
