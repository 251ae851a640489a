package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"berth.dev/berth/pkg/cluster/overview"
	"berth.dev/berth/pkg/explain/subject"
	"berth.dev/berth/pkg/process/schedulerconfig"
	"berth.dev/berth/pkg/screen/output"
	"berth.dev/berth/pkg/screen/progress"
	"berth.dev/berth/pkg/screen/tables"
	"berth.dev/berth/pkg/screen/top"
)

// watchFlags say which cluster to watch, and by which configuration to read it.
type watchFlags struct {
	cluster         clusterFlags
	schedulerConfig string
}

func (f *watchFlags) addTo(cmd *cobra.Command) {
	f.cluster.AddTo(cmd, false)
	cmd.Flags().StringVar(&f.schedulerConfig, "scheduler-config", "",
		"KubeSchedulerConfiguration file with the prices, the names of GPUs and the levels of the network (default: the "+
			"one that the cluster's scheduler runs with, else the shipped profiles)")
	if err := cmd.MarkFlagFilename("scheduler-config", "yaml", "yml", "json"); err != nil {
		panic(err)
	}
}

// watch reads the cluster, and follows it until ctx ends. It also returns the configuration by which it reads.
func (f *watchFlags) watch(ctx context.Context, messages io.Writer) (*overview.Watcher, *schedulerconfig.Configuration,
	error) {
	silenceLogs()
	from := source{cluster: f.cluster, schedulerConfig: f.schedulerConfig}
	configuration, err := from.configuration(ctx, messages)
	if err != nil {
		return nil, nil, err
	}
	prices, rates, err := configuration.Prices("")
	if err != nil {
		return nil, nil, badInput(configuration.Invalid(err))
	}
	config, err := f.cluster.RESTConfig()
	if err != nil {
		return nil, nil, err
	}
	watcher, err := overview.NewWatcher(config,
		overview.NewBook(configuration.GPUKeys(""), overview.Pricing{Of: prices, Rates: rates},
			configuration.NetworkLevels("")))
	if err != nil {
		return nil, nil, err
	}
	line, begin := progress.NewLine(messages), time.Now()
	watcher.Progress = func(kind string, objects int) {
		line.Show(fmt.Sprintf("%5.1fs  %d %s", time.Since(begin).Seconds(), objects, kind))
	}
	err = watcher.Start(ctx)
	line.Show("")
	return watcher, configuration, err
}

func newTopCommand() *cobra.Command {
	flags := &watchFlags{cluster: newClusterFlags()}
	var once, all bool
	var format output.Format
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch GPUs, queue, gangs and cost of a cluster in the terminal",
		Long: `Show a cluster as it is now, and follow it: each GPU of each node on a map, what waits and why, gangs and what they
lack, what the nodes cost, warnings, namespaces, and queues of Kueue. Enter shows the pods of a node, the workloads of
a namespace or a queue, or why a pod or a gang waits or is where it is. "?" shows all keys.

With --once, or where the output is no terminal, the same is printed once as text; with -o json or yaml as data. Only
reading is needed. docs/tool.md says what the words mean and which rights it takes.

Exit status: 0 when the view was left or printed, 2 for a file or flag that cannot be used, 1 for any other error.`,
		Example: `  berth top

  # For a script or a ticket
  berth top --once
  berth top -o json | jq .totals.strandedMilliGPU

  # The pods and gangs that have waited for more than an hour
  berth top -o json | jq -r '.queue[] | select(.waitSeconds > 3600) | "\(.namespace)/\(.name): \(.reason)"'`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			watcher, _, err := flags.watch(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			screen, file := tables.ScreenOf(out), os.Stdout
			if format != output.Table {
				return output.Write(out, format, watcher.Cluster(time.Now()))
			}
			if once || !term.IsTerminal(int(file.Fd())) || !term.IsTerminal(int(os.Stdin.Fd())) {
				most := 20
				if all {
					most = 0
				}
				return top.Once(out, watcher.Cluster(time.Now()), most)
			}
			return top.Run(cmd.Context(), top.Source{
				Cluster: func() *overview.Cluster { return watcher.Cluster(time.Now()) },
				Changed: watcher.Changed(),
				PodsOn:  func(node string) []overview.PodOn { return watcher.PodsOn(node, time.Now()) },
				Explain: flags.explain,
			}, screen.Color, os.Stdin, file)
		},
	}
	flags.addTo(cmd)
	cmd.Flags().BoolVar(&once, "once", false, "print the view once and end")
	cmd.Flags().BoolVar(&all, "all", false, "with --once, print every entry of the queue, the gangs and the warnings")
	format.AddTo(cmd)
	return cmd
}

// explain is what "berth explain" prints, in a table of a width.
func (f *watchFlags) explain(ctx context.Context, kind, namespace, name string, width int) (string, error) {
	flags := &explainFlags{source: source{cluster: f.cluster.in(namespace), schedulerConfig: f.schedulerConfig}, top: 10,
		format: output.Table}
	var out, warnings bytes.Buffer
	err := flags.run(ctx, subject.Target{Kind: kind, Name: name},
		tables.Output{Writer: &out, Screen: tables.Screen{Width: width}}, &warnings)
	if err != nil && ctx.Err() == nil {
		return "", errors.New(warnings.String() + err.Error())
	}
	return warnings.String() + out.String(), err
}
