package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"berth.dev/berth/pkg/lab/replay"
	"berth.dev/berth/pkg/lab/replay/replayed"
	"berth.dev/berth/pkg/lab/report"
	"berth.dev/berth/pkg/output"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/screen/progress"
)

// replayInput holds the flags that replay and compare share.
type replayInput struct {
	files   replay.Files
	options replay.Options
	start   string
}

// inputHelp describes the input in the help of replay and compare.
const inputHelp = `The cluster is a dump (berth dump) or a table of nodes; the work is the pending pods of the dump, all of its pods
(--rebind), or a trace of jobs. docs/tool.md describes the files, docs/internals/simulation.md modes and figures.`

func (in *replayInput) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&in.files.Dump, "dump", "", "cluster to replay on: a file written by berth dump")
	f.StringVar(&in.files.Nodes, "nodes", "",
		"cluster to replay on: a table of nodes, or a nodes file as berth up takes it (YAML or JSON)")
	f.StringVar(&in.files.Jobs, "jobs", "", "trace of jobs that arrive")
	f.StringVar(&in.files.Prices, "prices", "", "rates for nodes without a price")
	f.BoolVar(&in.files.Rebind, "rebind", false, "take the dump's pods off their nodes and schedule them again")
	f.StringVar(&in.options.Profile, "profile", "",
		"scheduler name of the jobs' pods (default: berth-scheduler if the configuration has it, else its first profile)")
	f.DurationVar(&in.options.Horizon, "horizon", 0,
		"end mode time after this virtual time (default: when every job has ended)")
	f.DurationVar(&in.options.Warmup, "warmup", 0,
		"leave out this virtual time at the beginning of the means of mode time")
	f.DurationVar(&in.options.CycleTime, "cycle-time", replay.DefaultCycleTime,
		"virtual time that one scheduling cycle takes")
	f.StringVar(&in.start, "start", "", "virtual time of the start, RFC 3339 (default: a Monday, midnight UTC)")
	f.StringVar(&in.options.FeatureGates, "feature-gates", "",
		"feature gates of the scheduler, as Name=true,… (default: those of the manifests)")
	f.StringVar((*string)(&in.options.Mode), "mode", string(replayed.VirtualTime), "how to offer the jobs: order or time")
	f.Int64Var(&in.options.Load, "load", replay.DefaultLoad,
		"GPU demand to offer in mode order, in thousandths of the cluster's GPUs")
}

func (in *replayInput) load() (replay.Input, error) {
	// For the replay, zero means the default. As the value of a flag it is a mistake.
	if in.options.CycleTime == 0 {
		return replay.Input{}, badInput(errors.New("--cycle-time: 0s is not allowed; want whole microseconds up to 1m"))
	}
	if in.options.Load == 0 {
		return replay.Input{}, badInput(errors.New("--load: 0 is not allowed; want 1 to 100000"))
	}
	if in.start != "" {
		start, err := time.Parse(time.RFC3339, in.start)
		if err != nil {
			return replay.Input{}, badInput(fmt.Errorf("--start: %q is not a time such as 2026-01-05T00:00:00Z", in.start))
		}
		in.options.Start = start
	}
	if err := in.options.Validate(); err != nil {
		return replay.Input{}, badInput(fmt.Errorf("--%w", err))
	}
	input, err := in.files.Load()
	return input, badInput(err)
}

func newReplayCommand() *cobra.Command {
	var in replayInput
	var config string
	var format output.Format
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Run a trace or a dump through the real scheduler of a configuration, on a virtual clock",
		Long: `replay runs the real scheduler with the given configuration on a cluster in memory and on a virtual clock, and says
what became of the pods. The same input, configuration and seed give the same result, except for what is measured.

` + inputHelp + `

Exit status: 0 when the replay ran to its end, 2 for a file that cannot be used, 1 for any other error.`,
		Example: `  # A trace in arrival order until the cluster is full, with the shipped profiles
  berth replay --config manifests/base/scheduler-config.yaml --nodes nodes.csv --jobs jobs.csv --mode order

  # The same with the default scheduler, as JSON
  berth replay --config stock --nodes nodes.csv --jobs jobs.csv --mode order -o json

  # Everything that runs in a cluster, scheduled again
  berth dump --file cluster.dump && berth replay --config new.yaml --dump cluster.dump --rebind`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			silenceLogs()
			input, err := in.load()
			if err != nil {
				return err
			}
			configuration, err := loadConfiguration(config)
			if err != nil {
				return err
			}
			result, err := runReplay(cmd.Context(), configuration, input, in.options, cmd.ErrOrStderr(), "replaying")
			if err != nil {
				return err
			}
			return format.Print(cmd.OutOrStdout(), result, func(out io.Writer) error {
				return report.WriteResult(out, result)
			})
		},
	}
	in.addFlags(cmd)
	cmd.Flags().StringVar(&config, "config", "",
		"scheduler configuration: a file, or stock for the default scheduler (default: the shipped profiles)")
	cmd.Flags().Uint64Var(&in.options.Seed, "seed", 0,
		"order of arrivals in mode order; order of the nodes in mode time, which decides between equal scores")
	format.AddTo(cmd)
	return cmd
}

// runReplay runs one replay and shows its progress on messages, under the label.
func runReplay(ctx context.Context, c *schedulerconfig.Configuration, in replay.Input, options replay.Options,
	messages io.Writer, label string) (*replayed.Result, error) {
	defer collectSeldom()()
	options.Progress = &replayed.Progress{}
	stop := progress.Follow(messages, label, options.Progress.Read)
	result, err := replay.Run(ctx, c, in, options)
	stop()
	if errors.Is(err, replay.ErrInput) {
		return nil, badInput(err)
	}
	return result, err
}
