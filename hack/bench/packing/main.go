// Command packing measures placement rules against each other by simulation: on clusters of several shapes, with work
// of many kinds, as the cluster fills up, as it turns over, and through a day. The rules are those of the literature
// and the one of pkg/gpu, with the mix of the work given or that of what runs, and with each of its terms off.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"berth.dev/berth/hack/bench/rig"
)

type options struct {
	method   string
	load     float64
	match    string
	heldOut  bool
	hard     bool
	policies []string
	seeds    int
	first    uint64
	openb    string
	variants []string
	json     string
	summary  bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "packing:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "packing",
		Short: "measure placement rules against each other by simulation",
		Example: strings.Join([]string{
			"  # Every family, filled up, the main rules",
			"  go run ./hack/bench/packing", "",
			"  # Ours without one term at a time, in a line each",
			"  go run ./hack/bench/packing --policies best-fit,fgd,ours,no-packing,no-hosts,no-opening --summary", "",
			"  # A steady load of 95%, with pods that come and go",
			"  go run ./hack/bench/packing --method churn --load 0.95", "",
			"  # The families in which a simple rule may win, with the profiles that know prices",
			"  go run ./hack/bench/packing --hard --policies best-fit,least-allocated,most-allocated,ours,berth,cost", "",
			"  # The openb trace",
			"  go run ./hack/bench/packing --openb ../shared/data/openb --seeds 10",
		}, "\n"),
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run(cmd.Context(), &o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.method, "method", "fill",
		"how pods come: fill (none leaves), churn (at a steady load), day (the load follows a curve)")
	f.Float64Var(&o.load, "load", 0.85, "GPUs that are asked for in a churn, or at the peak of the day, as a part of all")
	f.StringVar(&o.match, "families", "", "only families whose name contains this")
	f.BoolVar(&o.heldOut, "held-out", false,
		"the families by which no more than the weight of opening was chosen, instead of the others")
	f.BoolVar(&o.hard, "hard", false, "the families in which a simple rule may win, instead of the others")
	f.StringSliceVar(&o.policies, "policies", []string{"random", "best-fit", "most-allocated", "fgd", "given", "ours"},
		"rules to compare: "+strings.Join(slices.Sorted(maps.Keys(policies())), ", "))
	f.IntVar(&o.seeds, "seeds", 3, "random sequences of pods to average over")
	f.Uint64Var(&o.first, "first-seed", 0, "the first of these sequences")
	f.StringVar(&o.openb, "openb", "", "folder of the openb trace, which is measured instead of the families")
	f.StringSliceVar(&o.variants, "variants", []string{"default", "cpu100", "gpushare40", "multigpu20", "gpuspec10"},
		"variants of the trace")
	f.StringVar(&o.json, "json", "", "write the figures as JSON to this file")
	f.BoolVar(&o.summary, "summary", false, "print one line a rule instead of one a family")
	return cmd
}

func (o *options) check() error {
	known := policies()
	for _, p := range o.policies {
		if known[p] == nil {
			return fmt.Errorf("--policies: %q is none of %s", p, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
	}
	switch {
	case !slices.Contains([]string{"fill", "churn", "day"}, o.method):
		return fmt.Errorf("--method: %q is none of fill, churn, day", o.method)
	case !(o.load > 0 && o.load <= 2):
		return fmt.Errorf("--load: %v is not above 0 and at most 2", o.load)
	case o.seeds < 1:
		return fmt.Errorf("--seeds: %d is less than 1", o.seeds)
	case o.openb != "" && o.method != "fill":
		return errors.New("--openb: the trace is only filled in, as its authors do")
	case o.hard && (o.heldOut || o.openb != ""):
		return errors.New("--hard: these are other families than those of --held-out and --openb")
	}
	return nil
}

// result is what one rule reached on one family.
type result struct {
	Family string `json:"family"`
	Policy string `json:"policy"`
	// Mean of the runs.
	Mean outcome `json:"mean"`
}

func run(ctx context.Context, o *options, out, progress io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	all := families(o.heldOut)
	if o.hard {
		all = hardFamilies()
	}
	if o.openb != "" {
		all = nil
		for _, variant := range o.variants {
			f, err := openb(o.openb, variant)
			if err != nil {
				return err
			}
			all = append(all, *f)
		}
	}
	all = slices.DeleteFunc(all, func(f family) bool { return !strings.Contains(f.name, o.match) })
	if len(all) == 0 {
		return fmt.Errorf("--families: no family has %q in its name", o.match)
	}
	session, err := rig.Begin()
	if err != nil {
		return err
	}
	results := measure(ctx, o, all, progress)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !o.summary {
		printFamilies(out, o, results)
	}
	printSummary(out, o, results)
	return session.End(out, o.json, results)
}

// measure runs every rule on every family, in the order of both.
func measure(ctx context.Context, o *options, all []family, progress io.Writer) []result {
	results := make([]result, len(all)*len(o.policies))
	made := policies()
	work := make(chan int)
	var done atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range work {
				f, name := &all[i/len(o.policies)], o.policies[i%len(o.policies)]
				results[i] = o.one(ctx, f, name, made[name])
				if n := done.Add(1); n%100 == 0 {
					fmt.Fprintf(progress, "%d of %d\n", n, len(results))
				}
			}
		})
	}
	for i := range results {
		work <- i
	}
	close(work)
	workers.Wait()
	return results
}

func (o *options) one(ctx context.Context, f *family, name string, rule maker) result {
	r := result{Family: f.name, Policy: name}
	n := float64(o.seeds)
	for seed := o.first; seed < o.first+uint64(o.seeds); seed++ {
		if ctx.Err() != nil {
			return r
		}
		var got outcome
		switch with := func(c *cluster) policy { return rule(f, c, seed) }; o.method {
		case "fill":
			got = fill(f, with, seed)
		case "churn":
			got = churn(f, with, func(float64) float64 { return o.load }, seed)
		case "day":
			// A day of eight mean lifetimes, at night a third of the load at noon.
			got = churn(f, with, func(t float64) float64 { return o.load * (2 - math.Cos(2*math.Pi*t/8)) / 3 }, seed)
		}
		r.Mean.Allocated += got.Allocated / n
		r.Mean.BigMissing += got.BigMissing / n
		r.Mean.Nodes += got.Nodes / n
		r.Mean.Dollars += got.Dollars / n
	}
	return r
}

func printFamilies(out io.Writer, o *options, results []result) {
	t := table.NewWriter()
	t.SetOutputMirror(out)
	header := table.Row{"allocated % / big missing % / nodes / price an hour"}
	for _, p := range o.policies {
		header = append(header, p)
	}
	t.AppendHeader(header)
	for i := 0; i < len(results); i += len(o.policies) {
		row := table.Row{results[i].Family}
		for _, r := range results[i : i+len(o.policies)] {
			cell := fmt.Sprintf("%.2f / %.1f / %.1f", 100*r.Mean.Allocated, 100*r.Mean.BigMissing, r.Mean.Nodes)
			if r.Mean.Dollars > 0 {
				cell += fmt.Sprintf(" / $%.1f", r.Mean.Dollars)
			}
			row = append(row, cell)
		}
		t.AppendRow(row)
	}
	t.Render()
}

// printSummary compares each rule with the better of best-fit and FGD in what is allocated, and with best-fit in nodes
// in use.
func printSummary(out io.Writer, o *options, results []result) {
	bestFit, fgd := slices.Index(o.policies, "best-fit"), slices.Index(o.policies, "fgd")
	if bestFit < 0 || fgd < 0 {
		return
	}
	t := table.NewWriter()
	t.SetOutputMirror(out)
	t.AppendHeader(table.Row{"against the better of best-fit and fgd", "mean points", "worst", "families below by 0.3",
		"nodes against best-fit", "families above by 3%"})
	for j, p := range o.policies {
		var sum, worst, nodes float64
		below, more, n := 0, 0, 0
		for i := 0; i < len(results); i += len(o.policies) {
			row := results[i : i+len(o.policies)]
			d := 100 * (row[j].Mean.Allocated - max(row[bestFit].Mean.Allocated, row[fgd].Mean.Allocated))
			part := 100 * (row[j].Mean.Nodes/row[bestFit].Mean.Nodes - 1)
			sum, worst, nodes = sum+d, min(worst, d), nodes+part
			if d < -0.3 {
				below++
			}
			if part > 3 {
				more++
			}
			n++
		}
		t.AppendRow(table.Row{p, fmt.Sprintf("%+.2f", sum/float64(n)), fmt.Sprintf("%+.2f", worst),
			fmt.Sprintf("%d of %d", below, n),
			fmt.Sprintf("%+.1f%%", nodes/float64(n)), fmt.Sprintf("%d of %d", more, n)})
	}
	t.Render()
}
