package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"berth.dev/berth/pkg/advise"
	"berth.dev/berth/pkg/output"
	"berth.dev/berth/pkg/screen/progress"
)

// adviseFlags are the flags of advise.
type adviseFlags struct {
	source
	target string
	most   int
	format output.Format
}

func newAdviseCommand() *cobra.Command {
	flags := &adviseFlags{source: newSource()}
	cmd := &cobra.Command{
		Use:   "advise",
		Short: "Say what would help now: pods to move, nodes to give back, nodes to add",
		Long: `Say what would help a cluster now: which moves let a waiting pod or gang start, which nodes could be given back,
and what more nodes of a kind would let start. Each answer is a run of the real scheduler over a copy of the cluster,
or of a dump, in memory. Nothing is changed in the cluster.

What moves is what the scheduler's preemption would evict if the waiting work was more important, and only if it runs
again. Pods without a controller, of a node, of another scheduler, or whose PodDisruptionBudget or annotation forbids
it never move. A plan is played twice, with nodes that are equally good taken in either order, and shown if it works
both times. It does not prove that nothing smaller helps. What was not tried is named as "cut short".

Exit status: 0 when there is advice, 2 when a file, name or flag cannot be used, 1 for any other error.`,
		Example: `  berth advise

  # What would let one gang start
  berth advise --for podgroup/train -n research

  # From a dump, with another configuration, for programs
  berth advise --dump cluster.dump --scheduler-config new.yaml -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer collectSeldom()()
			return flags.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags.addTo(cmd)
	f := cmd.Flags()
	f.StringVar(&flags.target, "for", "", "look for moves for this one only: pod/NAME or podgroup/NAME")
	f.IntVar(&flags.most, "most", 5, "how many pending units, nodes and kinds of nodes to look at")
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

func (f *adviseFlags) run(ctx context.Context, out, messages io.Writer) error {
	if f.most < 1 {
		return badInput(fmt.Errorf("--most: %d is not 1 or more", f.most))
	}
	var target advise.Unit
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
	cluster, err := f.read(ctx, messages)
	if err != nil {
		return err
	}
	line := progress.NewLine(messages)
	advice, err := advise.Cluster(advise.Question{Configuration: configuration, Objects: cluster.Objects,
		LeftOut: cluster.LeftOut, Now: cluster.Taken, Target: target, Most: f.most, Progress: line})
	line.Clear()
	if err != nil {
		return badInput(err)
	}
	return f.format.Print(out, advice, advice.WriteTable)
}
