package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"berth.dev/berth/pkg/output"
	"berth.dev/berth/pkg/screen/tables"
	"berth.dev/berth/pkg/screen/top"
)

func newTopCommand() *cobra.Command {
	flags := newSource()
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
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, _, err := flags.watch(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			screen, file := tables.ScreenOf(out), os.Stdout
			if format != output.Table {
				return output.Write(out, format, store.Cluster(time.Now()))
			}
			if once || !term.IsTerminal(int(file.Fd())) || !term.IsTerminal(int(os.Stdin.Fd())) {
				most := 20
				if all {
					most = 0
				}
				return top.Once(out, store.Cluster(time.Now()), most)
			}
			source := store.Source()
			source.Explain = flags.explain
			return top.Run(cmd.Context(), source, screen.Color, os.Stdin, file)
		},
	}
	flags.addWatchTo(cmd)
	cmd.Flags().BoolVar(&once, "once", false, "print the view once and end")
	cmd.Flags().BoolVar(&all, "all", false, "with --once, print every entry of the queue, the gangs and the warnings")
	format.AddTo(cmd)
	return cmd
}
