package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"berth.dev/berth/pkg/advise"
	"berth.dev/berth/pkg/advise/carry"
	"berth.dev/berth/pkg/output"
	"berth.dev/berth/pkg/progress"
	"berth.dev/berth/pkg/schedulerconfig"
)

// adviseFlags say what to ask, and about what cluster.
type adviseFlags struct {
	source
	target string
	most   int
	search time.Duration
	evict  bool
	yes    bool
	within time.Duration
	format output.Format
}

func newAdviseCommand() *cobra.Command {
	flags := &adviseFlags{source: newSource()}
	cmd := &cobra.Command{
		Use:   "advise",
		Short: "Say what would help now: pods to move, nodes to give back, nodes to add, requests to change",
		Long: `Say what would help a cluster now, and prove it: each answer about placement is a run of the real scheduler, with
its configuration, over a copy of the cluster in memory and with the change applied. Nothing is changed in the
cluster without --evict.

Pending work, in the order of priority and then of age: moves that let a pod or a whole gang start, those that lose
the least work first. A pod moves only if its replacement runs again in the same run, a gang as a whole if it would
break. Pods that never move: those without a controller, those that belong to their node, those whose
PodDisruptionBudget allows no disruption, those that another scheduler places, and those with an annotation that asks
autoscalers not to evict them.

Members of gangs on failing hardware: what their replacements would run on.

Nodes to give back, if no work that waits could use them: nodes that nothing uses, then the dearest ones whose pods
all run elsewhere, one after the other. No pod is moved twice.

One more node: what pending work would start if there was one more node of a kind that the cluster has.

Requests: GPU pods that ask for so much CPU or memory with each GPU that other GPUs of the node are left without.
This part is arithmetic and not a run.

The search tries the most promising changes first and ends after --search; what it has not tried is named as "cut
short". It does not prove that nothing smaller helps.

--evict carries out the first plan for pending work: it asks, cordons the nodes that pods leave, evicts unit after
unit through the eviction API, waits each time until the replacements are bound, uncordons the nodes, and waits
until the work has started. Before each unit the rest of the plan is run again on the cluster as it is then. It
stops, and uncordons, as soon as the rest does not work any more or the cluster is not as the plan has it.

Exit status: 0 when there is advice or, with --evict, the work has started; 2 when a file, name or flag cannot be
used, 1 for any other error.`,
		Example: `  berth advise

  # What would let one gang start, and do it
  berth advise --for podgroup/train -n research
  berth advise --for podgroup/train -n research --evict

  # From a dump, with another configuration, for programs
  berth advise --dump cluster.dump --scheduler-config new.yaml -o json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags.addTo(cmd)
	f := cmd.Flags()
	f.StringVar(&flags.target, "for", "", "look for moves for this one only: pod/NAME or podgroup/NAME")
	f.IntVar(&flags.most, "most", 5, "how many pending units, nodes and kinds of nodes to look at")
	f.DurationVar(&flags.search, "search", time.Minute, "how long to search")
	f.BoolVar(&flags.evict, "evict", false, "carry the first plan out, after asking")
	f.BoolVar(&flags.yes, "yes", false, "with --evict: do not ask")
	f.DurationVar(&flags.within, "within", 2*time.Minute, "with --evict: how long each step may take")
	flags.format.AddTo(cmd)
	if err := cmd.RegisterFlagCompletionFunc("for",
		func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			if strings.Contains(typed, "/") {
				return flags.cluster.completeJoined(cmd, typed)
			}
			return []string{advise.KindPod + "/", advise.KindPodGroup + "/"},
				cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}); err != nil {
		panic(err)
	}
	return cmd
}

// check refuses flags that do not go together.
func (f *adviseFlags) check() error {
	switch {
	case f.most < 1:
		return fmt.Errorf("--most: %d is not 1 or more", f.most)
	case f.search <= 0:
		return fmt.Errorf("--search: %s is not more than 0", f.search)
	case f.within <= 0:
		return fmt.Errorf("--within: %s is not more than 0", f.within)
	case f.yes && !f.evict:
		return errors.New("--yes goes with --evict only")
	case f.evict && f.dump != "":
		return errors.New("--evict is for a live cluster: it does not go with --dump")
	case f.evict && f.format != output.Table:
		return errors.New("--evict does not go with --output json or yaml")
	}
	return nil
}

func (f *adviseFlags) run(ctx context.Context, in io.Reader, out, messages io.Writer) error {
	if err := f.check(); err != nil {
		return badInput(err)
	}
	if file, isFile := in.(*os.File); f.evict && !f.yes &&
		(!isFile || !term.IsTerminal(int(file.Fd()))) { //nolint:gosec // descriptors are small
		return badInput(errors.New("--evict asks before it evicts, and there is no terminal to ask on: add --yes"))
	}
	var target advise.Target
	if f.target != "" {
		var err error
		if target, err = advise.ParseTarget(f.target, f.namespace()); err != nil {
			return badInput(fmt.Errorf("--for: %w", err))
		}
	}
	silenceLogs()
	configuration, err := f.configuration(ctx, messages)
	if err != nil {
		return err
	}
	objects, now, leftOut, err := f.objects(ctx, messages)
	if err != nil {
		return err
	}
	line := progress.NewLine(messages)
	limited, cancel := context.WithTimeout(ctx, f.search)
	defer cancel()
	advice, err := advise.Cluster(limited,
		advise.Question{Configuration: configuration, Objects: objects, LeftOut: leftOut, Now: now, Target: target,
			Most: f.most, Progress: line.Show})
	line.Clear()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return badInput(fmt.Errorf("--search: %s is over before the scheduler has run once: %w", f.search, err))
	}
	if err != nil {
		return badInput(err)
	}
	if f.format != output.Table {
		return output.Write(out, f.format, advice)
	}
	if err := advice.WriteTable(out); err != nil || !f.evict {
		return err
	}
	return f.carryOut(ctx, configuration, advice, in, out)
}

// carryOut asks and evicts.
func (f *adviseFlags) carryOut(ctx context.Context, configuration *schedulerconfig.Configuration, advice *advise.Advice,
	in io.Reader, out io.Writer) error {
	unit, plan := advice.FirstPlan()
	if plan == nil {
		return errors.New("there is no plan to carry out")
	}
	if !f.yes {
		fmt.Fprintf(out, "\nCarry out the plan for %s? [y/N] ", unit)
		answer, err := bufio.NewReader(in).ReadString('\n')
		if word := strings.ToLower(strings.TrimSpace(answer)); err != nil || word != "y" && word != "yes" {
			return errors.New("nothing was evicted")
		}
	}
	client, err := f.cluster.Client()
	if err != nil {
		return err
	}
	carrier := &carry.Carrier{Client: client, Within: f.within, Poll: 500 * time.Millisecond, Say: progress.Steps(out),
		Holds: func(ctx context.Context, rest *advise.Plan) error {
			objects, now, leftOut, err := f.objects(ctx, io.Discard)
			if err != nil {
				return err
			}
			limited, cancel := context.WithTimeout(ctx, f.search)
			defer cancel()
			return advise.Holds(limited,
				advise.Question{Configuration: configuration, Objects: objects, LeftOut: leftOut, Now: now}, rest)
		}}
	if err := carrier.Carry(ctx, plan); err != nil {
		return fmt.Errorf("carrying out the plan for %s: %w", unit, err)
	}
	return nil
}
