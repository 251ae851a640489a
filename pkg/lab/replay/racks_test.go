package replay

import (
	"fmt"
	"testing"
	"time"

	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/lab/trace"
)

// TestAGangIsInOneRackWithoutAWordInIt has racks that are in use to different degrees.
func TestAGangIsInOneRackWithoutAWordInIt(t *testing.T) {
	t.Parallel()
	var nodes []trace.Node
	var jobs []trace.Job
	racks := map[string]string{}
	for i := range 32 {
		n := trace.Node{Name: fmt.Sprintf("n%02d", i), CPUMilli: 32_000, MemoryMiB: 65_536, GPUs: 8, Model: "Tesla-T4",
			Rack: fmt.Sprint("r", i%4)}
		nodes = append(nodes, n)
		racks[n.Name] = n.Rack
	}
	for i := range 10 {
		jobs = append(jobs, trace.Job{Name: fmt.Sprint("single-", i), Pods: 1, CPUMilli: 8000, MemoryMiB: 1024, GPUs: 8,
			GPUMilli: 1000})
	}
	for i := range 3 {
		jobs = append(jobs, trace.Job{Name: fmt.Sprint("gang-", i), Pods: 4, CPUMilli: 8000, MemoryMiB: 1024, GPUs: 8,
			GPUMilli: 1000, Gang: true,
			Arrival: time.Duration(i+1) * time.Minute})
	}
	in := NewInput("racks", nodes, jobs)
	r := mustRun(t, shipped, in, Options{Mode: replayed.VirtualTime, Horizon: time.Hour})
	for i := range 3 {
		used := map[string]bool{}
		for member := range 4 {
			used[racks[r.Placements[fmt.Sprintf("replay/gang-%d-%d", i, member)]]] = true
		}
		if len(used) != 1 || used[""] {
			t.Errorf("gang %d is in racks %v, want one", i, used)
		}
	}
}
