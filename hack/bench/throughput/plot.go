package main

import (
	"cmp"
	"fmt"
	"slices"

	"berth.dev/berth/hack/bench/rig"
	"berth.dev/berth/pkg/svg"
)

// growthPlot draws the CPU time per pod over the number of nodes, one plot a workload: medians, with bands from the
// least to the most.
func growthPlot(runs []run) string {
	var workloads []string
	for i := range runs {
		if !slices.Contains(workloads, runs[i].Workload) {
			workloads = append(workloads, runs[i].Workload)
		}
	}
	plots := make([]svg.Plot, len(workloads))
	for i, w := range workloads {
		plots[i] = growthOf(runs, w)
	}
	return svg.Document("CPU time of the scheduler per pod by number of nodes", plots)
}

func growthOf(runs []run, workload string) svg.Plot {
	var nodes []int
	var sizes []float64
	most := 0.0
	for i := range runs {
		if r := &runs[i]; r.Workload == workload {
			most = max(most, r.CPUMillisPerPod)
			if !slices.Contains(nodes, r.Nodes) {
				nodes = append(nodes, r.Nodes)
			}
		}
	}
	slices.Sort(nodes)
	for _, n := range nodes {
		sizes = append(sizes, float64(n))
	}
	p := svg.Plot{
		Title: "Workload " + workload + ", ms of CPU per pod",
		// Clusters grow by factors. The axis goes a little beyond them, so that a single size is in the middle.
		X: svg.Axis{
			Label: "nodes (logarithmic scale)", Min: sizes[0] / 1.15, Max: sizes[len(sizes)-1] * 1.15, Log: true,
			Ticks: sizes, Format: func(v float64) string { return thousands(int(v)) },
		},
		Y: svg.Axis{Max: svg.Above(most), Format: func(v float64) string { return fmt.Sprintf("%.4g", v) }},
	}
	for i, contender := range contendersOf(runs) {
		s := svg.Series{Class: svg.LineClass(i), Name: contender}
		for _, n := range nodes {
			if list := values(runs, group{n, workload}, contender, cpuMillisPerPod); len(list) > 0 {
				of := rig.SpreadOf(list)
				s.X, s.Y = append(s.X, float64(n)), append(s.Y, of.Median)
				s.Low, s.Top = append(s.Low, of.Least), append(s.Top, of.Most)
			}
		}
		if len(s.X) > 0 {
			p.Lines = append(p.Lines, s)
		}
	}
	// The legend is in the order of the lines' ends.
	slices.SortStableFunc(p.Lines, func(a, b svg.Series) int { return cmp.Compare(b.Y[len(b.Y)-1], a.Y[len(a.Y)-1]) })
	return p
}

// thousands writes a number with commas between groups of three digits.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
