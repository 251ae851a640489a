package main

import (
	"fmt"
	"slices"

	"berth.dev/berth/pkg/replay/replayed"
	"berth.dev/berth/pkg/trace"
)

// waits says how long jobs of a priority have waited for their first start. Those that have not started count until the end.
func waits(jobs []trace.Job, out *replayed.Result, priority int32) string {
	var all []float64
	sum := 0.0
	for i := range jobs {
		if jobs[i].Priority != priority || jobs[i].Arrival.Seconds() > out.VirtualSeconds {
			continue
		}
		start, started := out.Starts[jobs[i].Name]
		if !started {
			start = out.VirtualSeconds
		}
		wait := (start - jobs[i].Arrival.Seconds()) / 60
		all = append(all, wait)
		sum += wait
	}
	slices.Sort(all)
	if len(all) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f / %.1f / %.1f", all[len(all)/2], sum/float64(len(all)), all[len(all)*95/100])
}
