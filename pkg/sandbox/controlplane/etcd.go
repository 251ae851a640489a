package controlplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"

	"berth.dev/berth/pkg/sandbox"
)

// etcdStartTimeout is generous: without fsync a new member serves within a second.
const etcdStartTimeout = 60 * time.Second

// defaultQuotaBytes is enough for 20,000 nodes.
const defaultQuotaBytes = 8 << 30

// runEtcd runs one etcd member until ctx ends and calls ready once it serves. Clients and peers need a certificate of
// the sandbox's authority, so that no other user of the machine can write past the API server.
func runEtcd(ctx context.Context, opts sandbox.Options, keys sandbox.Keys, port int, ready func()) error {
	layout := sandbox.Layout(opts.Dir)
	tls := transport.TLSInfo{
		CertFile: keys.Cert(sandbox.KeyServer), KeyFile: keys.Key(sandbox.KeyServer),
		TrustedCAFile: keys.Cert(sandbox.KeyCA), ClientCertAuth: true,
	}
	config := embed.NewConfig()
	config.Dir = layout.Etcd()
	config.ListenClientUrls = []url.URL{loopbackURL(port)}
	config.AdvertiseClientUrls = config.ListenClientUrls
	// With a separate port for HTTP, gRPC uses its own server. On a shared port watches starve under load
	// (etcd-io/etcd#15402), and the API server gets no more events.
	config.ListenClientHttpUrls = []url.URL{loopbackURL(0)}
	// There are no peers, but etcd requires a listener for them.
	config.ListenPeerUrls = []url.URL{loopbackURL(0)}
	config.AdvertisePeerUrls = config.ListenPeerUrls
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.ClientTLSInfo, config.PeerTLSInfo = tls, tls
	config.UnsafeNoFsync = !opts.Fsync
	config.LogLevel = "warn"
	config.LogOutputs = []string{filepath.Join(layout.Logs(), "etcd.log")}
	config.QuotaBackendBytes = cmp.Or(opts.EtcdQuotaBytes, defaultQuotaBytes)

	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return fmt.Errorf("starting etcd: %w", err)
	}
	defer etcd.Close()
	select {
	case <-etcd.Server.ReadyNotify():
		ready()
	case err := <-etcd.Err():
		return fmt.Errorf("starting etcd: %w", err)
	case <-time.After(etcdStartTimeout):
		return fmt.Errorf("starting etcd: not ready after %v", etcdStartTimeout)
	case <-ctx.Done():
		return nil
	}
	select {
	case err := <-etcd.Err():
		return fmt.Errorf("running etcd: %w", err)
	case <-etcd.Server.StopNotify():
		return errors.New("running etcd: the server stopped")
	case <-ctx.Done():
		return nil
	}
}

func loopbackURL(port int) url.URL {
	return url.URL{Scheme: "https", Host: loopbackAddress(port)}
}

func loopbackAddress(port int) string {
	return net.JoinHostPort("127.0.0.1", fmt.Sprint(port))
}
