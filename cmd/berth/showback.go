package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"berth.dev/berth/pkg/output"
	"berth.dev/berth/pkg/replay/replayed"
	"berth.dev/berth/pkg/report"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/showback"
)

type showbackFlags struct {
	input   replayInput
	metrics showbackMetrics
	config  string
	by      string
	page    string
	format  output.Format
}

func newShowbackCommand() *cobra.Command {
	var flags showbackFlags
	cmd := &cobra.Command{
		Use:   "showback",
		Short: "Say who had GPUs and what they cost, by namespace, gang or label",
		Long: `showback divides the bill of a cluster: GPU-hours and dollars by namespace, by gang or by a label of the pods. A pod
pays for the part of its node that it requests, by the node's price. Idle parts of nodes in use and empty nodes are
lines of their own, so that the lines add up to the price of all nodes. --page writes a page with plots by day.

With --prometheus the figures are those of a real cluster: GPUs that pods had, from the scheduler's
kube_pod_resource_request or from kube-state-metrics; how busy they were, where DCGM says so; dollars, where
OpenCost prices GPUs. Gangs and labels are read from kube_pod_labels, in which kube-state-metrics has those that its
flag --metric-labels-allowlist names.

Otherwise the work is replayed on a virtual clock, as berth replay does it with the same flags. The bill ends with
the work, or at --horizon; pods that never end need one.

` + inputHelp + `

Exit status: 0 when it ran to its end, 2 for a file or flag that cannot be used, 1 for any other error.`,
		Example: `  # A trace of a month, by namespace, with a page
  berth showback --nodes nodes.csv --jobs month.csv --by namespace --page showback.html

  # What the pods of a cluster would cost in 30 days, by the label "team"
  berth dump --file cluster.dump && berth showback --dump cluster.dump --horizon 720h --by label=team

  # What the namespaces of a cluster had in January, and how busy it was
  berth showback --prometheus https://prometheus.example.com --from 2026-01-01 --to 2026-02-01 --bearer-token-file token

  # The last 30 days of a cluster, by the label "team"
  berth showback --prometheus https://prometheus.example.com --by label=team`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			silenceLogs()
			if err := flags.metrics.refuse(cmd.Flags()); err != nil {
				return err
			}
			return runShowback(cmd.Context(), &flags, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags.input.addFlags(cmd)
	flags.metrics.addFlags(cmd)
	flags.input.mode = string(replayed.VirtualTime)
	f := cmd.Flags()
	f.StringVar(&flags.config, "config", "",
		"scheduler configuration: a file, or stock for the default scheduler (default: the shipped profiles)")
	f.StringVar(&flags.by, "by", "namespace", "by what to tell pods apart: namespace, gang or label=KEY")
	f.StringVar(&flags.page, "page", "", "write the statement as one self-contained page to this file")
	_ = cmd.MarkFlagFilename("config")
	_ = cmd.MarkFlagFilename("page", "html")
	_ = cmd.RegisterFlagCompletionFunc("by", completeBy)
	flags.format.AddTo(cmd)
	return cmd
}

// completeBy offers the kinds of keys; the key of a label is the user's own.
func completeBy(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"namespace", "gang", "label="}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func runShowback(ctx context.Context, flags *showbackFlags, out, progress io.Writer) error {
	by, err := showback.ParseBy(flags.by)
	if err != nil {
		return badInput(fmt.Errorf("--by: %w", err))
	}
	if err := writable("page", flags.page); err != nil {
		return err
	}
	configuration, err := loadConfiguration(flags.config, openFile)
	if err != nil {
		return err
	}
	var statement *showback.Statement
	if flags.metrics.server.Prometheus.URL != "" {
		statement, err = flags.metrics.read(ctx, by, configuration.GPUKeys("").Resources)
	} else {
		statement, err = flags.replayed(ctx, configuration, by, progress)
	}
	if err != nil {
		return err
	}
	if flags.page != "" {
		if err := writeFile(flags.page,
			func(w io.Writer) error { return report.WriteShowbackHTML(w, statement) }); err != nil {
			return fmt.Errorf("writing the page: %w", err)
		}
	}
	if flags.format == output.Table {
		return report.WriteShowback(out, statement)
	}
	return output.Write(out, flags.format, statement)
}

// replayed is the statement of a replay.
func (f *showbackFlags) replayed(ctx context.Context, configuration *schedulerconfig.Configuration, by showback.By,
	progress io.Writer) (*showback.Statement, error) {
	input, err := f.input.load()
	if err != nil {
		return nil, err
	}
	options := f.input.options
	options.Showback = &by
	result, err := runReplay(ctx, configuration, input, options, func(p *replayed.Progress) func() {
		return showProgress(progress, "replaying", p)
	})
	if err != nil {
		return nil, err
	}
	return result.Showback, nil
}
