package tools_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/signals"
	"berth.dev/berth/test/harness/require"
)

// certify writes a self-signed certificate of 127.0.0.1 and its key.
func certify(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "prometheus"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	certFile = write(t, "tls.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	keyFile = write(t, "tls.key", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})))
	return certFile, keyFile
}

// openSesame is bcrypt of "open sesame", at its lowest cost.
const openSesame = "$2a$04$Y3e7tMkffpQL7xjlGuHql.vd0Nbmk3ZPmjoL.IbTjpiruCXbZV85y"

func TestARealPrometheusIsAskedOverTLSWithAPassword(t *testing.T) {
	t.Parallel()
	certFile, keyFile := certify(t)
	webConfig := write(t, "web.yml", fmt.Sprintf(
		"tls_server_config: {cert_file: %s, key_file: %s}\nbasic_auth_users: {berth: %q}\n", certFile, keyFile, openSesame))
	openCost := startExporter(t, `node_total_hourly_cost{node="a"} 1.25`)
	server := startPrometheus(t, openCost.job("opencost", ""), "", webConfig)

	args := priceArgs(server.url)
	args.Prometheus.TLS = &config.PrometheusTLS{CAFile: certFile}
	args.Prometheus.BasicAuth = &config.BasicAuth{Username: "berth", PasswordFile: write(t, "password", "open sesame\n")}
	r := startPrices(t, args)
	reads(t, func() string {
		if amount := r.Snapshot().Of(offered("a", ""), "", time.Now()); amount != 1_250_000 {
			return fmt.Sprintf("price %s", amount)
		}
		return ""
	})

	for name, c := range map[string]struct {
		change func(*config.Prometheus)
		want   string
	}{
		"a wrong password": {func(p *config.Prometheus) {
			p.BasicAuth = &config.BasicAuth{Username: "berth", PasswordFile: write(t, "wrong", "guess")}
		}, "401"},
		"no password": {func(p *config.Prometheus) { p.BasicAuth = nil }, "401"},
		"a missing password": {func(p *config.Prometheus) {
			p.BasicAuth.PasswordFile = filepath.Join(t.TempDir(),
				"absent")
		}, "absent"},
		"a server not trusted": {func(p *config.Prometheus) { p.TLS = nil }, "certificate"},
		// The server says what it is, and closes the connection, which may hide what it has said.
		"plain HTTP": {func(p *config.Prometheus) { p.URL = strings.Replace(p.URL, "https:", "http:", 1) }, "querying"},
	} {
		bad := *args.Prometheus.DeepCopy()
		c.change(&bad)
		refused := priceArgs(bad.URL)
		refused.Prometheus = bad
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
		if _, err := signals.StartPrices(klog.NewContext(t.Context(), logger), newFactory(), refused); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		reads(t, func() string {
			if log := logger.GetSink().(ktesting.Underlier).GetBuffer().String(); !strings.Contains(log, c.want) {
				return fmt.Sprintf("with %s it says %q, want %q", name, log, c.want)
			}
			return ""
		})
	}
}
