package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"berth.dev/berth/hack/bench/rig"
)

// report prints a table for each workload at each size, small clusters first, and one of the scheduler's CPU time per
// pod as the cluster grows. A single size has no growth.
func report(out io.Writer, runs []run) error {
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

// thousands writes a number with commas between groups of three digits.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
