// Command bench measures what Berth's documents claim: what scheduling costs against the stock scheduler, how well GPUs
// are packed, what nodes cost, and how long gangs wait. Each case is one entry of a table:
//
//	go run ./hack/bench list
//	go run ./hack/bench run gangs start
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"berth.dev/berth/hack/bench/guard"
	"berth.dev/berth/hack/bench/packing"
	"berth.dev/berth/hack/bench/rig"
)

// options are those of all cases. Each says which of them it reads.
type options struct {
	guard, update                           bool
	json, profiles, trace, config, families string
	nodes, seeds                            int
	load                                    float64
	policies                                []string
}

func main() {
	rig.Quiet()
	if err := newCommand().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	root := &cobra.Command{Use: "bench", Short: "measure what is claimed of Berth",
		SilenceUsage: true, SilenceErrors: true}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(newRun(), newChild(), &cobra.Command{
		Use: "list", Short: "list the cases, what each shows and what it needs", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return list(cmd.OutOrStdout()) },
	})
	return root
}

func newRun() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "run CASE...",
		Short: "measure cases, and fail if a figure is worse than hack/bench/guard/figures.yaml allows",
		Example: strings.Trim(`
  # What guards, in one to two minutes on two cores with no other work
  make bench-guard

  # Some figures, with profiles of the CPU
  go run ./hack/bench run gangs backlog --profiles /tmp && go tool pprof -top /tmp/backlog-berth.pprof

  # Accept what the memory is now
  go run ./hack/bench run memory --update

  # 15,000 nodes and 150,000 pods need 5 GiB and two minutes
  go run ./hack/bench run scale --nodes 15000

  # Pods that come and go, at a steady load of 95%
  go run ./hack/bench run packing --load 0.95

  # Families in which a simple rule may win, with the profiles that know prices
  go run ./hack/bench run packing-hard --policies best-fit,most-allocated,ours,berth,cost

  # A whole trace of pods
  go run ./hack/bench run packing-openb cost --trace openb

  # A whole trace of jobs
  go run ./hack/bench run starttimes --trace cluster02.csv --nodes 16`, "\n"),
		RunE: func(cmd *cobra.Command, names []string) error {
			chosen, err := choose(names, o.guard)
			if err == nil {
				err = o.check(cmd.Flags(), chosen)
			}
			if err != nil {
				return err
			}
			return rig.Measure(cmd.OutOrStdout(), o.json, func(ctx context.Context, out io.Writer) (any, error) {
				return o.measure(ctx, out, chosen)
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.guard, "guard", false, "the cases that guard against a change for the worse, if none is named")
	f.BoolVar(&o.update, "update", false, "write figures to figures.yaml, and hold them against what was there")
	f.StringVar(&o.json, "json", "", rig.JSONUsage)
	f.StringVar(&o.profiles, "profiles", "", "write a CPU profile of the last run of each scheduler to this folder")
	f.IntVar(&o.nodes, "nodes", 0, "number of nodes (default: that of the case)")
	f.IntVar(&o.seeds, "seeds", 0, "random sequences of pods to average over (default: that of the case)")
	f.StringVar(&o.trace, "trace", "", "folder or file of a published trace")
	f.StringVar(&o.config, "config", "manifests/base/scheduler-config.yaml", "scheduler configuration with the profiles")
	f.Float64Var(&o.load, "load", 0,
		"what is asked for of the GPUs while pods come and go, as a part of all; 0: they come until they have asked for all")
	f.StringVar(&o.families, "families", "", "only families of work whose name contains this")
	f.StringSliceVar(&o.policies, "policies", []string{"random", "best-fit", "most-allocated", "fgd", "given", "ours"},
		"rules to compare: "+strings.Join(packing.Policies(), ", "))
	return cmd
}

// newChild measures one scheduler for another process of this program.
func newChild() *cobra.Command {
	var child guard.Child
	cmd := &cobra.Command{
		Use: guard.ChildCommand + " NAME SCHEDULER", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			child.Name, child.Scheduler = args[0], args[1]
			return child.Measure(cmd.OutOrStdout())
		},
	}
	cmd.Flags().IntVar(&child.Nodes, "nodes", 0, "")
	cmd.Flags().StringVar(&child.Profiles, "profiles", "", "")
	return cmd
}

// choose finds cases by their names, or those that guard.
func choose(names []string, guarding bool) ([]benchCase, error) {
	var chosen []benchCase
	all := cases()
	for _, name := range names {
		i := slices.IndexFunc(all, func(c benchCase) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no case %q; `go run ./hack/bench list` lists them", name)
		}
		chosen = append(chosen, all[i])
	}
	if len(names) == 0 && guarding {
		chosen = slices.DeleteFunc(all, func(c benchCase) bool { return c.needs != guards })
	}
	if len(chosen) == 0 {
		return nil, errors.New("name at least one case, or --guard; `go run ./hack/bench list` lists them")
	}
	return chosen, nil
}

// check refuses flags that no chosen case reads, and a case whose trace is not given.
func (o *options) check(given *pflag.FlagSet, chosen []benchCase) (err error) {
	given.Visit(func(f *pflag.Flag) {
		reads := func(c benchCase) bool { return slices.Contains(strings.Fields(c.flags), "--"+f.Name) }
		if f.Name != "guard" && f.Name != "json" && !slices.ContainsFunc(chosen, reads) {
			err = errors.Join(err, fmt.Errorf("--%s: none of the chosen cases reads it", f.Name))
		}
	})
	for _, c := range chosen {
		if strings.Contains(c.flags, "--trace") && o.trace == "" {
			err = errors.Join(err, fmt.Errorf("%s needs %s", c.name, c.needs))
		}
	}
	if o.nodes < 0 || o.seeds < 0 {
		err = errors.Join(err, errors.New("--nodes, --seeds: less than 0 is not allowed"))
	}
	return err
}

// measure measures the cases: the figures in one table, and each other case in one of its own.
func (o *options) measure(ctx context.Context, out io.Writer, chosen []benchCase) (any, error) {
	results := map[string]any{}
	var figures []guard.Figure
	for _, c := range chosen {
		if c.figure != nil {
			figures = append(figures, *c.figure)
		}
	}
	var failed error
	if len(figures) > 0 {
		results["figures"], failed = guard.Hold(ctx, out, figures, o.update, o.profiles)
	}
	for _, c := range chosen {
		if c.figure != nil || ctx.Err() != nil {
			continue
		}
		measured, err := c.run(ctx, out, o)
		if err != nil {
			err = fmt.Errorf("%s: %w", c.name, err)
		}
		results[c.name], failed = measured, errors.Join(failed, err)
	}
	return results, failed
}
