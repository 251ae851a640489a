package rig

import (
	"context"
	"fmt"
)

// Memory is what a scheduler holds, in bytes.
type Memory struct {
	// Resident is what the kernel counts, now and at most so far. The Go runtime gives freed memory back late.
	Resident, PeakResident int64
	// Heap is what lives on the heap.
	Heap int64
}

// Memory has the scheduler collect its garbage, and reads what is left.
func (s *Scheduler) Memory(ctx context.Context) (m Memory, err error) {
	// What is pooled survives the first collection.
	for range 2 {
		if _, err := s.get(ctx, "/debug/pprof/heap?gc=1"); err != nil {
			return m, fmt.Errorf("collecting the scheduler's garbage: %w", err)
		}
	}
	families, err := s.Metrics(ctx)
	if err != nil {
		return m, err
	}
	heap := families["go_memstats_heap_alloc_bytes"].GetMetric()
	if len(heap) != 1 {
		return m, fmt.Errorf("reading the scheduler's metrics: %d values of go_memstats_heap_alloc_bytes, want 1", len(heap))
	}
	m.Heap = int64(heap[0].GetGauge().GetValue())
	if m.Resident, err = ResidentBytes(s.PID()); err != nil {
		return m, err
	}
	m.PeakResident, err = PeakResidentBytes(s.PID())
	return m, err
}
