package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"k8s.io/component-base/version"

	"berth.dev/berth/pkg/command"
	"berth.dev/berth/pkg/output"
)

func thisVersion() command.Version {
	return command.NewVersion(version.Get(), version.DefaultKubeBinaryVersion)
}

func newVersionCommand() *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Say which version this is, and which Kubernetes it is built from",
		Long: `Say which version of Berth this is, which Kubernetes it is built from, and when and from which commit it was built.

No cluster is asked.`,
		Example: `  berth version
  berth version -o json | jq -r .berth`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != output.Table {
				v := thisVersion()
				return output.Write(cmd.OutOrStdout(), format, &v)
			}
			return thisVersion().WriteTable(cmd.OutOrStdout())
		},
	}
	format.AddTo(cmd)
	return cmd
}

func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man FOLDER",
		Short: "Write the manual pages of all commands into a folder",
		Long: `Write a manual page for each command, in section 1, into a folder that is there. The pages are made from what --help
shows, and are the same for the same build.`,
		Example: `  mkdir -p ~/.local/share/man/man1 && berth man ~/.local/share/man/man1
  man berth-explain`,
		Args: cobra.ExactArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if info, err := os.Stat(args[0]); err != nil {
				return badInput(fmt.Errorf("writing the pages: %w", err))
			} else if !info.IsDir() {
				return badInput(fmt.Errorf("writing the pages: %s is not a folder", args[0]))
			}
			// Not the time of the call: the same build gives the same pages.
			built, err := time.Parse(time.RFC3339, version.Get().BuildDate)
			if err != nil {
				built = time.Unix(0, 0).UTC()
			}
			v := thisVersion()
			header := &doc.GenManHeader{Section: "1", Source: "Berth " + v.Berth, Manual: "Berth", Date: &built}
			cmd.Root().DisableAutoGenTag = true
			if err := doc.GenManTree(cmd.Root(), header, args[0]); err != nil {
				return fmt.Errorf("writing the pages: %w", err)
			}
			return nil
		},
	}
}
