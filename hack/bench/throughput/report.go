package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"

	"berth.dev/berth/hack/bench/rig"
	"berth.dev/berth/pkg/svg"
)

func cpuPerPod(r *run) float64 { return r.CPUMillisPerPod }

// report prints a table for each workload at each size, small clusters first, and one of the scheduler's CPU time per
// pod as the cluster grows, which it also draws if there is a file for it. A single size has no growth.
func report(out io.Writer, runs []run, plot string) error {
	type key struct {
		nodes, repeat int
		workload      string
	}
	rig.AgainstBase(runs, func(r *run) key { return key{r.Nodes, r.Repeat, r.Workload} },
		func(r *run) bool { return r.Contender == "stock" }, func(r, stock *run) {
			r.CPUOverStock = r.CPUMillisPerPod / stock.CPUMillisPerPod
			r.PodsOverStock = r.PodsPerSecond / stock.PodsPerSecond
		})
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, func(a, b run) int { return cmp.Compare(a.Nodes, b.Nodes) })
	if plot != "" {
		if err := os.WriteFile(plot, []byte(growthPlot(runs)), 0o600); err != nil {
			return fmt.Errorf("writing the plot: %w", err)
		}
	}
	var growth []growthRow
	for _, g := range rig.Groups(runs, func(r *run) key { return key{r.Nodes, 0, r.Workload} }) {
		repeats := 0
		for _, r := range g {
			repeats = max(repeats, r.Repeat)
			growth = append(growth, growthRow{thousands(r.Nodes), r.Workload, r.Contender, r.CPUMillisPerPod})
		}
		_, _ = fmt.Fprintf(out, "%d nodes, %d pods (%s); median of %d runs, least to most in brackets\n", g[0].Nodes,
			g[0].Pods, g[0].Workload, repeats)
		if err := rig.Table(out, g); err != nil {
			return err
		}
	}
	if runs[0].Nodes == runs[len(runs)-1].Nodes {
		return nil
	}
	_, _ = fmt.Fprintln(out, "CPU ms/pod as the cluster grows; medians, least to most in brackets")
	slices.SortStableFunc(growth, func(a, b growthRow) int {
		return cmp.Or(cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Contender, b.Contender))
	})
	return rig.Table(out, growth)
}

// growthRow is a run in the table of the growth, in which the sizes of a workload of a contender are below each other.
type growthRow struct {
	Nodes     string  `row:"nodes"`
	Workload  string  `row:"workload"`
	Contender string  `row:""`
	CPU       float64 `column:"CPU ms/pod|%.2f"`
}

// growthPlot draws the CPU time per pod over the number of nodes, one plot a workload: medians, with bands from the
// least to the most. The runs are in the order of the nodes.
func growthPlot(runs []run) string {
	var plots []svg.Plot
	for _, g := range rig.Groups(runs, func(r *run) string { return r.Workload }) {
		plots = append(plots, growthOf(g))
	}
	return svg.Document("CPU time of the scheduler per pod by number of nodes", plots)
}

// growthOf draws the runs of one workload.
func growthOf(runs []run) svg.Plot {
	nodesOf := func(r *run) int { return r.Nodes }
	var sizes []float64
	for _, g := range rig.Groups(runs, nodesOf) {
		sizes = append(sizes, float64(g[0].Nodes))
	}
	p := svg.Plot{
		Title: "Workload " + runs[0].Workload + ", ms of CPU per pod",
		// Clusters grow by factors. The axis goes a little beyond them, so that a single size is in the middle.
		X: svg.Axis{
			Label: "nodes (logarithmic scale)", Min: sizes[0] / 1.15, Max: sizes[len(sizes)-1] * 1.15, Log: true,
			Ticks: sizes, Format: func(v float64) string { return thousands(int(v)) },
		},
		Y: svg.Axis{Max: svg.Above(slices.Max(rig.Values(runs, cpuPerPod))),
			Format: func(v float64) string { return fmt.Sprintf("%.4g", v) }},
	}
	for i, c := range rig.Groups(runs, func(r *run) string { return r.Contender }) {
		s := svg.Series{Class: svg.LineClass(i), Name: c[0].Contender}
		for _, g := range rig.Groups(c, nodesOf) {
			of := rig.SpreadOf(rig.Values(g, cpuPerPod))
			s.X, s.Y = append(s.X, float64(g[0].Nodes)), append(s.Y, of.Median)
			s.Low, s.Top = append(s.Low, of.Least), append(s.Top, of.Most)
		}
		p.Lines = append(p.Lines, s)
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
