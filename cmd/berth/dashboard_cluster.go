package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/spf13/cobra"

	"berth.dev/berth/pkg/dashboard"
)

// inClusterFlags are those of a dashboard for the readers of a cluster.
type inClusterFlags struct {
	listen, certFile, keyFile, name string
}

func (f *inClusterFlags) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "",
		"address at which to serve readers with tokens of the API server, such as :8443")
	flags.StringVar(&f.certFile, "tls-cert-file", "",
		"with --listen: file with the certificate (default: one made at the start, which browsers cannot verify)")
	flags.StringVar(&f.keyFile, "tls-private-key-file", "", "with --listen: file with the key of the certificate")
	flags.StringVar(&f.name, "title", "GPUs", "with --listen: name of the cluster on the page")
	cmd.MarkFlagsRequiredTogether("tls-cert-file", "tls-private-key-file")
}

// serveInCluster serves until ctx ends.
func (f *watchFlags) serveInCluster(ctx context.Context, in *inClusterFlags, messages io.Writer) error {
	certificate, err := dashboard.Certificate(in.certFile, in.keyFile)
	if err != nil {
		return badInput(fmt.Errorf("--tls-cert-file: %w", err))
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", in.listen)
	if err != nil {
		return badInput(fmt.Errorf("--listen: %w", err))
	}
	defer listener.Close()
	watcher, _, err := f.watch(ctx, messages)
	if err != nil {
		return err
	}
	client, err := f.cluster.Client()
	if err != nil {
		return err
	}
	fmt.Fprintf(messages, "serving https://%s\n", listener.Addr())
	server := dashboard.NewInCluster(sourceOf(ctx, watcher, in.name), dashboard.NewAccess(client))
	err = server.ServeInCluster(ctx, listener, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate})
	return errors.Join(err, ctx.Err())
}
