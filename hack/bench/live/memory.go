package live

import (
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
func (p *Process) Memory() Memory {
	// What is pooled survives the first collection.
	for range 2 {
		_, err := p.get("/debug/pprof/heap?gc=1")
		rig.Check(err, "collecting the scheduler's garbage")
	}
	heap := p.Metrics().Sum("go_memstats_heap_alloc_bytes", "")
	resident, peak, err := rig.ResidentBytes(p.PID())
	rig.Check(err, "reading the scheduler's memory")
	return Memory{float64(resident) / (1 << 20), float64(peak) / (1 << 20), heap / (1 << 20)}
}
