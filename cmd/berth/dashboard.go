package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"berth.dev/berth/pkg/dashboard"
	"berth.dev/berth/pkg/overview"
)

// explainColumns is how wide explanations are in a browser.
const explainColumns = 120

func newDashboardCommand() *cobra.Command {
	flags := &watchFlags{cluster: newClusterFlags()}
	var port uint16
	var inCluster inClusterFlags
	cmd := &cobra.Command{
		Use:   "dashboard",
		Short: "Watch GPUs, queue, gangs and cost of a cluster in a browser",
		Long: `Serve a page on this machine that shows what "berth top" shows, follows the cluster, and plots the last hour. Names
lead to the pods of a node and to explanations.

The page is served on the loopback interface only, reads the cluster with your rights, changes nothing and loads
nothing from elsewhere. Its address contains a token that is new at each start: do not share the address. To look
from another machine, forward the port (ssh -L).

With --listen it serves readers of a cluster over TLS instead, as manifests/dashboard does: each sends a token of
the API server, from a proxy in the header Authorization or typed into the page, and sees the namespaces in which he
may list pods, and the nodes if he may list these. It then explains nothing, and still changes nothing.

Exit status: 2 for a flag or file that cannot be used, 130 after Ctrl-C, 1 for any other error.`,
		Example: `  berth dashboard

  # On a port that an ssh tunnel leads to
  berth dashboard --port 8899

  # In a pod
  berth dashboard --listen :8443`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if inCluster.listen != "" {
				return flags.serveInCluster(cmd.Context(), &inCluster, cmd.ErrOrStderr())
			}
			listener, err := (&net.ListenConfig{}).Listen(cmd.Context(), "tcp",
				net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
			if err != nil {
				return badInput(fmt.Errorf("--port: %w", err))
			}
			defer listener.Close()
			watcher, _, err := flags.watch(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			source := sourceOf(cmd.Context(), watcher, cmp.Or(flags.cluster.ContextName(), "cluster"))
			source.Explain = func(ctx context.Context, kind, namespace, name string) (string, error) {
				return flags.explain(ctx, kind, namespace, name, explainColumns)
			}
			server := dashboard.New(source)
			err = server.Serve(cmd.Context(), listener, func(address string) {
				fmt.Fprintln(cmd.OutOrStdout(), address)
				fmt.Fprintln(cmd.ErrOrStderr(), "open the address above in a browser of this machine; Ctrl-C ends")
			})
			return cmp.Or(err, cmd.Context().Err())
		},
	}
	flags.addTo(cmd)
	cmd.Flags().Uint16Var(&port, "port", 0, "port on 127.0.0.1 (default: any that is free)")
	inCluster.addTo(cmd)
	cmd.MarkFlagsMutuallyExclusive("port", "listen")
	return cmd
}

// sourceOf shows what a watcher knows, which follows what is learned of run times until ctx ends.
func sourceOf(ctx context.Context, watcher *overview.Watcher, name string) dashboard.Source {
	go watcher.FollowRunTimes(ctx)
	return dashboard.Source{
		Name:    name,
		Cluster: func() *overview.Cluster { return watcher.Cluster(time.Now()) },
		PodsOn:  func(node string) []overview.PodOn { return watcher.PodsOn(node, time.Now()) },
		Plan:    watcher.Plan,
		History: watcher.History,
	}
}
