package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"berth.dev/berth/pkg/cluster/dump"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/plural"
)

func newDumpCommand() *cobra.Command {
	var file, schedulerConfig string
	var hashNames bool
	cluster := newClusterFlags()
	cmd := &cobra.Command{
		Use:   "dump",
		Short: "Write a snapshot of a live cluster, for replay and explain",
		Long: `Write what a scheduler reads of a cluster into one compressed file: nodes, pods, groups, classes, volumes, claims and
devices, and of services and controllers what decides about their pods. It only lists, so read-only rights are enough;
what the server does not serve or you may not list is left out and said so (without nodes and pods there is no dump).

Never in it: Secrets, ConfigMaps, environment variables, commands, arguments, volumes that name secrets, parameters
of drivers, and annotations other than those that decide about placement. --hash-names replaces names by hashes;
docs/tool.md says which. Look at the file before you give it away. It is replaced only when the dump is complete.

Exit status: 0 when the file is complete, 2 for a file or flag that cannot be used, 1 for any other error.`,
		Example: `  berth dump --file cluster.dump

  # From another context, to be given away
  berth dump --context production --hash-names --file cluster.dump

  # What is in it, by kind
  zcat cluster.dump | jq -r .kind | sort | uniq -c`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var keys *gpuview.Keys
			if hashNames {
				silenceLogs()
				from := source{cluster: cluster, schedulerConfig: schedulerConfig}
				configuration, err := from.configuration(cmd.Context(), cmd.ErrOrStderr())
				if err != nil {
					return err
				}
				names := configuration.GPUKeys("")
				keys = &names
			}
			return takeDump(cmd.Context(), cluster, file, keys, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cluster.AddTo(cmd, false)
	cmd.Flags().StringVar(&file, "file", "", "file to write; - is standard output")
	cmd.Flags().BoolVar(&hashNames, "hash-names", false, "replace names by hashes")
	cmd.Flags().StringVar(&schedulerConfig, "scheduler-config", "",
		"with --hash-names, KubeSchedulerConfiguration file with the names of GPUs (default: the one that the cluster's "+
			"scheduler runs with, else the shipped profiles)")
	if err := cmd.MarkFlagRequired("file"); err != nil {
		panic(err)
	}
	return cmd
}

func takeDump(ctx context.Context, cluster clusterFlags, file string, hashed *gpuview.Keys, out,
	progress io.Writer) error {
	reader, err := cluster.reader(progress, true)
	if err != nil {
		return err
	}
	if file == "-" {
		_, err := dump.Take(ctx, reader, out, hashed)
		return err
	}
	if err := writable("file", file); err != nil {
		return err
	}
	taken, err := dump.TakeFile(ctx, reader, file, hashed)
	if err != nil {
		return err
	}
	for _, kind := range taken.LeftOut {
		fmt.Fprintf(progress, "left out: %s\n", kind)
	}
	size := ""
	if taken.Bytes > 0 { // a pipe has no known length
		size = fmt.Sprintf(", %d KiB", (taken.Bytes+1023)/1024)
	}
	fmt.Fprintf(progress, "%s: %s%s\n", file, plural.Of(taken.Objects, "object"), size)
	return nil
}
