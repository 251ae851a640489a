package main

import (
	"cmp"
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/cobra"

	"berth.dev/berth/pkg/screen/dashboard"
)

func newDashboardCommand() *cobra.Command {
	flags := newSource()
	var port uint16
	cmd := &cobra.Command{
		Use:   "dashboard",
		Short: "Watch GPUs, queue, gangs and cost of a cluster in a browser",
		Long: `Serve a page on this machine that shows what "berth top" shows, follows the cluster, and plots the last hour. Names
lead to the pods of a node and to explanations.

The page is served on the loopback interface only, reads the cluster with your rights, changes nothing and loads
nothing from elsewhere. Its address contains a token that is new at each start: do not share the address. To look
from another machine, forward the port (ssh -L).

Exit status: 2 for a flag or file that cannot be used, 130 after Ctrl-C, 1 for any other error.`,
		Example: `  berth dashboard

  # On a port that an ssh tunnel leads to
  berth dashboard --port 8899`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			listener, err := (&net.ListenConfig{}).Listen(cmd.Context(), "tcp",
				net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
			if err != nil {
				return badInput(fmt.Errorf("--port: %w", err))
			}
			defer listener.Close()
			store, _, err := flags.watch(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			source := store.Source()
			source.Name, source.Explain = cmp.Or(flags.cluster.ContextName(), "cluster"), flags.explain
			err = dashboard.New(source).Serve(cmd.Context(), listener, func(address string) {
				fmt.Fprintln(cmd.OutOrStdout(), address)
				fmt.Fprintln(cmd.ErrOrStderr(), "open the address above in a browser of this machine; Ctrl-C ends")
			})
			return cmp.Or(err, cmd.Context().Err())
		},
	}
	flags.addWatchTo(cmd)
	cmd.Flags().Uint16Var(&port, "port", 0, "port on 127.0.0.1 (default: any that is free)")
	return cmd
}
