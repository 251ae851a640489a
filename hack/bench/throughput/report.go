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

func contenderOf(r run) []string { return []string{r.Contender} }
func workloadOf(r run) []string  { return []string{r.Workload} }
func nodesOf(r run) []string     { return []string{thousands(r.Nodes)} }

var cpuPerPod = rig.Column("CPU\nms/pod", "%.2f", func(r run) float64 { return r.CPUMillisPerPod })

// figures are the columns of a table, some as multiples of what stock shows in the same repeat.
func figures(runs []run) []rig.Figure[run] {
	podsPerSecond := func(r run) float64 { return r.PodsPerSecond }
	overStock := func(of func(run) float64) func(run) float64 {
		type key struct {
			nodes, repeat int
			workload      string
		}
		return rig.Ratio(runs, of, func(r run) key { return key{r.Nodes, r.Repeat, r.Workload} },
			func(r run) bool { return r.Contender == "stock" })
	}
	return []rig.Figure[run]{
		cpuPerPod,
		rig.Column("CPU\n× stock", "%.2f", overStock(cpuPerPod.Of)),
		rig.Column("\npods/s", "%.0f", podsPerSecond),
		rig.Column("pods/s\n× stock", "%.2f", overStock(podsPerSecond)),
		rig.Column("algorithm,\nmedian ms", "%.2f", func(r run) float64 { return r.AlgorithmMedianMillis }),
		rig.Column("allocations\n/pod", "%.0f", func(r run) float64 { return r.AllocationsPerPod }),
		rig.Column("allocated\nKiB/pod", "%.0f", func(r run) float64 { return r.AllocatedKiBPerPod }),
		rig.Column("peak RSS\nMiB", "%.0f", func(r run) float64 { return r.PeakResidentMiB }),
		rig.Column("peak heap\nMiB", "%.0f", func(r run) float64 { return r.PeakHeapMiB }),
		rig.Column("other work\ncores", "%.2f", func(r run) float64 { return r.OtherCores }),
	}
}

// report prints a table for each workload at each size, small clusters first, and one of the scheduler's CPU time per
// pod as the cluster grows, which it also draws if there is a file for it. A single size has no growth.
func report(out io.Writer, runs []run, plot string) error {
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, func(a, b run) int { return cmp.Compare(a.Nodes, b.Nodes) })
	if plot != "" {
		if err := os.WriteFile(plot, []byte(growthPlot(runs)), 0o600); err != nil {
			return fmt.Errorf("writing the plot: %w", err)
		}
	}
	figures := figures(runs)
	for _, g := range rig.Groups(runs, func(r run) []string { return []string{nodesOf(r)[0], r.Workload} }) {
		first, repeats := g.Runs[0], 0
		for _, r := range g.Runs {
			repeats = max(repeats, r.Repeat)
		}
		_, _ = fmt.Fprintf(out, "%d nodes, %d pods (%s); median of %d runs, least to most in brackets\n", first.Nodes,
			first.Pods, first.Workload, repeats)
		if err := rig.Table(out, []string{first.Workload}, contenderOf, figures, g.Runs); err != nil {
			return err
		}
	}
	if runs[0].Nodes == runs[len(runs)-1].Nodes {
		return nil
	}
	_, _ = fmt.Fprintln(out, "CPU ms/pod as the cluster grows; medians, least to most in brackets")
	return rig.Pivot(out, "nodes", func(r run) string { return nodesOf(r)[0] },
		func(r run) string { return r.Workload + ",\n" + r.Contender }, cpuPerPod, runs)
}

// growthPlot draws the CPU time per pod over the number of nodes, one plot a workload: medians, with bands from the
// least to the most. The runs are in the order of the nodes.
func growthPlot(runs []run) string {
	var plots []svg.Plot
	for _, g := range rig.Groups(runs, workloadOf) {
		plots = append(plots, growthOf(g.Key[0], g.Runs))
	}
	return svg.Document("CPU time of the scheduler per pod by number of nodes", plots)
}

func growthOf(workload string, runs []run) svg.Plot {
	var sizes []float64
	most := 0.0
	for _, g := range rig.Groups(runs, nodesOf) {
		sizes = append(sizes, float64(g.Runs[0].Nodes))
		most = max(most, slices.Max(g.Values(cpuPerPod.Of)))
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
	for i, c := range rig.Groups(runs, contenderOf) {
		s := svg.Series{Class: svg.LineClass(i), Name: c.Key[0]}
		for _, g := range rig.Groups(c.Runs, nodesOf) {
			of := rig.SpreadOf(g.Values(cpuPerPod.Of))
			s.X, s.Y = append(s.X, float64(g.Runs[0].Nodes)), append(s.Y, of.Median)
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
