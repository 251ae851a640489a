package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"berth.dev/berth/pkg/cluster/overview"
	"berth.dev/berth/pkg/output"
	"berth.dev/berth/pkg/screen/command"
	"berth.dev/berth/pkg/screen/top"
)

func newStatusCommand() *cobra.Command {
	flags := newSource()
	var format output.Format
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say on one screen whether the scheduler is healthy, what runs, what waits and why, and what it costs",
		Long: `Say on one screen whether the scheduler is healthy, how many GPUs are in use, what the nodes cost, and which
workloads wait for what. "berth top" shows the same cluster live, "berth jobs" all workloads.

The scheduler is healthy when its leader has renewed its lease. Only reading is needed: nodes and pods, and the
Lease, Jobs, PodGroups, resource slices and claims, events and Kueue's objects where they may be read.

Exit status: 0 when the scheduler is healthy, 3 when it is not or that is not known, 2 for a file or flag that
cannot be used, 1 for any other error.`,
		Example: `  berth status

  # Wait until a scheduler leads
  until berth status >/dev/null; do sleep 5; done`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.status(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), format)
		},
	}
	flags.addWatchTo(cmd)
	format.AddTo(cmd)
	return cmd
}

func (f *source) status(ctx context.Context, out, messages io.Writer, format output.Format) error {
	store, configuration, err := f.watch(ctx, messages)
	if err != nil {
		return err
	}
	client, err := f.cluster.Client()
	if err != nil {
		return err
	}
	election, now := configuration.Component.LeaderElection, time.Now()
	name := election.ResourceName
	if !election.LeaderElect {
		name = ""
	}
	cluster := store.Cluster(now)
	status := cluster.Status(overview.HealthOf(ctx, client, election.ResourceNamespace, name, now))
	err = format.Print(out, status, func(out io.Writer) error { return top.Status(out, cluster, status) })
	if err == nil && !status.Scheduler.Healthy {
		err = command.WithStatus(fmt.Errorf("the scheduler is %s", status.Scheduler.Message), 3)
	}
	return err
}
