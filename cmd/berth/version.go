package main

import (
	"github.com/spf13/cobra"
	"k8s.io/component-base/version"

	"berth.dev/berth/pkg/output"
	"berth.dev/berth/pkg/screen/command"
)

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
			v := command.NewVersion(version.Get(), version.DefaultKubeBinaryVersion)
			return format.Print(cmd.OutOrStdout(), &v, v.WriteTable)
		},
	}
	format.AddTo(cmd)
	return cmd
}
