// Command berth is the operator's tool: a real local control plane in one command, and answers about what a scheduler
// configuration does.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-base/version"

	"berth.dev/berth/pkg/screen/command"
)

// whatFor is what berth prints without arguments.
const whatFor = `What do you want to do?

  See it at work, on a local cluster of 40 GPU nodes
      berth demo

  See what runs, what waits and why, and what it costs
      berth status            one screen
      berth jobs              one line for each workload
      berth top               live

  Ask why a pod is where it is, or why it waits
      berth explain pod NAME

  Ask what another configuration would do to a cluster
      berth dump --file cluster.dump
      berth compare --a old.yaml --b new.yaml --dump cluster.dump --rebind

  Check a configuration or a manifest before a cluster sees it
      berth validate FILE

"berth --help" lists all commands, "berth COMMAND --help" has examples.
`

func main() {
	command.DropLinkedFlags()
	root := newRootCommand()
	command.AsKubectlPlugin(root, os.Args[0], os.Args[1:])
	os.Exit(command.Run(root, os.Stderr))
}

// badInput gives an error the exit status for a file, name or flag that cannot be used.
func badInput(err error) error { return command.BadInput(err) }

// pointToJobs points users who have rights in one namespace only to berth jobs.
func pointToJobs(cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "at the cluster scope") {
			return fmt.Errorf(`%w; "berth jobs -n NAMESPACE" needs no right outside of the namespace`, err)
		}
		return err
	}
	return cmd
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "berth",
		Short: "A local control plane for GPU scheduling, and answers about what a configuration does",
		Long: `berth says what runs in a cluster, why a pod is where it is, and what a configuration would do to a cluster or a
trace of jobs. It checks files before a cluster sees them, and brings up a real local control plane.

A link to it named kubectl-berth in the PATH makes it a plugin, "kubectl berth", and one named kubectl_complete-berth
beside that completes its arguments there. For "berth" itself see "berth completion --help".

Exit status: 0 when the command did what it was asked, 2 for a file, name or flag that cannot be used, 130 after
Ctrl-C (143 after a SIGTERM), 1 for any other error; where a command has others, its help says so.`,
		Example: `  # A cluster of the nodes in a file, with the shipped scheduler profiles
  berth up --nodes manifests/nodes/demo.yaml
  export KUBECONFIG=$PWD/.berth/kubeconfig
  kubectl apply -f manifests/examples/00-first-pods/ml-training.yaml
  berth explain pod ml-training`,
		Version: version.Get().String(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), whatFor)
			return err
		},
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newUpCommand(), newDownCommand(), newDemoCommand(), newReplayCommand(), newCompareCommand(),
		newControlPlaneCommand())
	root.AddCommand(newDumpCommand(), pointToJobs(newTopCommand()), pointToJobs(newStatusCommand()),
		pointToJobs(newJobsCommand()), pointToJobs(newDashboardCommand()), pointToJobs(newExplainCommand()),
		newAdviseCommand(), newValidateCommand(), newVersionCommand())
	if err := command.Complete(root, flagCompletions()); err != nil {
		panic(err)
	}
	return root
}
