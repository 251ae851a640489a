package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"berth.dev/berth/pkg/cluster/inputs"
	"berth.dev/berth/pkg/cluster/overview"
	"berth.dev/berth/pkg/output"
	"berth.dev/berth/pkg/process/rights"
	"berth.dev/berth/pkg/screen/top"
)

type jobsFlags struct {
	cluster clusterFlags
	all     bool
	mine    bool
	format  output.Format
}

func newJobsCommand() *cobra.Command {
	flags := jobsFlags{cluster: newClusterFlags()}
	cmd := &cobra.Command{
		Use:   "jobs",
		Short: "List workloads: what runs where, what waits and why",
		Long: `List the workloads of a namespace, one line each: Jobs, JobSets, Deployments, RayClusters, gangs and single pods,
with their state, how many of their pods have a node, their GPUs, where they are, their place in a queue of Kueue,
and why they wait.

The namespace is that of --namespace, else of the kubeconfig's context. --all-namespaces lists all, and --mine those
namespaces in which you may create pods. Only reading is needed: pods, and Jobs, PodGroups, nodes, resource slices and
claims and Kueue's objects where they may be read.

States: Queued (Kueue has not admitted it), Suspended, NoPods (it has none), Gated, Pending (no pod has a node),
Partial (some have one), Starting (all have one), Running.

Exit status: 0 when the list was printed, 2 for a flag that cannot be used, 1 for any other error.`,
		Example: `  berth jobs -n research
  berth jobs --mine

  # What waits longest, for a script
  berth jobs -A -o json | jq -r '[.jobs[] | select(.state == "Pending")] | max_by(.ageSeconds) | .name'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return flags.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	flags.cluster.AddTo(cmd, true)
	cmd.Flags().BoolVarP(&flags.all, "all-namespaces", "A", false, "list the workloads of all namespaces")
	cmd.Flags().BoolVar(&flags.mine, "mine", false, "list the workloads of the namespaces in which you may create pods")
	cmd.MarkFlagsMutuallyExclusive("all-namespaces", "mine", "namespace")
	flags.format.AddTo(cmd)
	return cmd
}

func (f *jobsFlags) run(ctx context.Context, out io.Writer) error {
	silenceLogs()
	config, err := f.cluster.RESTConfig()
	if err != nil {
		return err
	}
	config.QPS = -1 // the API server has limits of its own
	// A tenant who may not read the configuration gets no warning: it only says which resources are GPUs and which labels
	// are levels of the network.
	configuration, err := f.cluster.running(ctx, io.Discard)
	if err != nil {
		return err
	}
	namespaces := []string{f.cluster.Namespace()}
	if f.all {
		namespaces = []string{metav1.NamespaceAll}
	} else if f.mine {
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return fmt.Errorf("making a client: %w", err)
		}
		if namespaces, err = rights.NamespacesToCreatePods(ctx, client); err != nil {
			return err
		}
	}
	store := overview.NewStore(configuration.GPUKeys(""), overview.Pricing{}, configuration.NetworkLevels())
	reader, err := inputs.NewReader(config)
	if err != nil {
		return err
	}
	if err := store.Read(ctx, reader, namespaces...); err != nil {
		return err
	}
	list := store.JobList(time.Now())
	return f.format.Print(out, list, func(out io.Writer) error { return top.Jobs(out, list) })
}
