package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/cert"

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

// certificate is that of the files, read again at each handshake, so that a renewed one is used, or one of its own.
func (f *inClusterFlags) certificate() (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	load := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(f.certFile, f.keyFile)
		return &pair, err
	}
	if f.certFile == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("asking for the name of the host: %w", err)
		}
		own, key, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("making a certificate: %w", err)
		}
		pair, err := tls.X509KeyPair(own, key)
		load = func() (*tls.Certificate, error) { return &pair, err }
	}
	if _, err := load(); err != nil {
		return nil, badInput(fmt.Errorf("--tls-cert-file: %w", err))
	}
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return load() }, nil
}

// serveInCluster serves until ctx ends.
func (f *watchFlags) serveInCluster(ctx context.Context, in *inClusterFlags, messages io.Writer) error {
	certificate, err := in.certificate()
	if err != nil {
		return err
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
	client, err := f.cluster.client()
	if err != nil {
		return err
	}
	fmt.Fprintf(messages, "serving https://%s\n", listener.Addr())
	server := dashboard.NewInCluster(sourceOf(ctx, watcher, in.name), dashboard.NewAccess(client))
	err = server.ServeInCluster(ctx, listener, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate})
	return errors.Join(err, ctx.Err())
}
