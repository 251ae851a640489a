// Package packing measures placement rules against each other by simulation: on clusters of several shapes, with work
// of many kinds, as the cluster fills up and as it turns over. The rules are those of the literature and the one of
// pkg/gpu, with the mix of the work given or that of what runs.
//
// The program in hack/bench calls it. It knows no scheduler, no API and no clock. The same seeds give the same figures.
package packing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"berth.dev/berth/hack/bench/rig"
)

// Run is what is measured of the families of a set.
type Run struct {
	// Load is what is asked for of the GPUs while pods come and go, as a part of all. With 0 they come until they have
	// asked for all, and none goes.
	Load float64
	// Families are only those with this in their names.
	Families string
	// Policies are the rules to compare, by name.
	Policies []string
	// Seeds are random sequences of pods to average over.
	Seeds int
}

// DefaultSeeds is enough for differences of a few tenths of a point.
const DefaultSeeds = 3

// Policies are the names of all rules that can be compared.
func Policies() []string { return slices.Sorted(maps.Keys(policies())) }

// Result is what one rule reached on one family, the mean of the runs.
type Result struct {
	Family string `json:"family" row:"family"`
	Policy string `json:"policy" row:"rule"`
	// Allocated is the part of the GPUs that pods have: when as much has been asked for as there is, or in the mean
	// over the time.
	Allocated float64 `json:"allocatedPercent" column:"GPUs\nallocated, %|%.2f"`
	// BigMissing is the part of the demand of big pods that got no place, or the part of all GPUs that big pods wait
	// for in the mean.
	BigMissing float64 `json:"bigMissingPercent" column:"missing of\nbig pods, %|%.1f"`
	// Nodes is the number of nodes in use when half has been asked for, or in the mean over the time, and Dollars what
	// they cost an hour.
	Nodes   float64 `json:"nodes" column:"nodes\nin use|%.1f"`
	Dollars float64 `json:"dollars" column:"dollars\nan hour|%.1f|optional"`
}

// Measure compares the rules on the families, and prints what each reaches on each, and a summary.
func (r *Run) Measure(ctx context.Context, out io.Writer, all []Family) ([]Result, error) {
	all = slices.DeleteFunc(slices.Clone(all), func(f Family) bool { return !strings.Contains(f.name, r.Families) })
	if err := r.check(all); err != nil {
		return nil, err
	}
	results := r.all(ctx, all)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err := rig.Table(out, results); err != nil {
		return results, err
	}
	return results, r.summarize(out, results)
}

func (r *Run) check(all []Family) error {
	for _, name := range r.Policies {
		if !slices.Contains(Policies(), name) {
			return fmt.Errorf("--policies: %q is none of %s", name, strings.Join(Policies(), ", "))
		}
	}
	switch {
	case !(r.Load >= 0 && r.Load <= 2):
		return fmt.Errorf("--load: %v is not allowed; want 0 to 2", r.Load)
	case r.Load > 0 && slices.ContainsFunc(all, func(f Family) bool { return f.pods != nil }):
		return errors.New("--load: the pods of a trace only come, as in the study by its authors")
	case r.Seeds < 1:
		return fmt.Errorf("--seeds: %d is not allowed; want at least 1", r.Seeds)
	case len(all) == 0:
		return fmt.Errorf("--families: no family has %q in its name", r.Families)
	}
	return nil
}

// all runs every rule on every family, in the order of both.
func (r *Run) all(ctx context.Context, all []Family) []Result {
	results := make([]Result, len(all)*len(r.Policies))
	made := policies()
	work := make(chan int)
	var done atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range work {
				f, name := &all[i/len(r.Policies)], r.Policies[i%len(r.Policies)]
				results[i] = r.one(ctx, f, name, made[name])
				if n := done.Add(1); n%100 == 0 {
					rig.Progress("%d of %d", n, len(results))
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

func (r *Run) one(ctx context.Context, f *Family, name string, rule maker) Result {
	mean := Result{Family: f.name, Policy: name}
	n := float64(r.Seeds)
	for seed := range uint64(r.Seeds) {
		if ctx.Err() != nil {
			return mean
		}
		with := func(c *cluster) policy { return rule(f, c, seed) }
		var got Result
		if r.Load > 0 {
			got = churn(f, with, r.Load, seed)
		} else {
			got = fill(f, with, seed)
		}
		mean.Allocated += got.Allocated / n
		mean.BigMissing += got.BigMissing / n
		mean.Nodes += got.Nodes / n
		mean.Dollars += got.Dollars / n
	}
	return mean
}

// summary is a rule on all families: what is allocated against the better of best-fit and FGD, in points, and nodes in
// use against best-fit.
type summary struct {
	Policy  string  `row:"against the better of best-fit and fgd"`
	Mean    float64 `column:"mean\npoints|%+.2f"`
	Worst   float64 `column:"worst|%+.2f"`
	Below   int     `column:"families below\nby 0.3|%.0f"`
	Nodes   float64 `column:"nodes against\nbest-fit, %|%+.1f"`
	Above   int     `column:"families above\nby 3%|%.0f"`
	Counted int     `column:"families|%.0f"`
}

// summarize prints the summary if both rules are among those that were compared.
func (r *Run) summarize(out io.Writer, results []Result) error {
	bestFit, fgd := slices.Index(r.Policies, "best-fit"), slices.Index(r.Policies, "fgd")
	if bestFit < 0 || fgd < 0 {
		return nil
	}
	rules := make([]summary, len(r.Policies))
	n := len(results) / len(rules)
	for row := range slices.Chunk(results, len(rules)) {
		for i := range rules {
			s := &rules[i]
			points := row[i].Allocated - max(row[bestFit].Allocated, row[fgd].Allocated)
			nodes := 100 * (row[i].Nodes/row[bestFit].Nodes - 1)
			s.Policy, s.Counted = r.Policies[i], n
			s.Mean, s.Worst, s.Nodes = s.Mean+points/float64(n), min(s.Worst, points), s.Nodes+nodes/float64(n)
			if points < -0.3 {
				s.Below++
			}
			if nodes > 3 {
				s.Above++
			}
		}
	}
	return rig.Table(out, rules)
}

// Idle is the part of the GPUs in percent that the rule that is installed leaves idle in one family as it fills up.
func Idle(ctx context.Context, name string) (float64, error) {
	all := slices.Concat(Families(), Hard())
	at := slices.IndexFunc(all, func(f Family) bool { return f.name == name })
	if at < 0 {
		return 0, fmt.Errorf("no family is named %q", name)
	}
	r := Run{Seeds: DefaultSeeds}
	return 100 - r.one(ctx, &all[at], "ours", policies()["ours"]).Allocated, ctx.Err()
}
