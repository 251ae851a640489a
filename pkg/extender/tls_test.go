package extender

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"berth.dev/berth/test/harness/await"
	"berth.dev/berth/test/harness/require"
)

// authority signs certificates for loopback, of servers and clients.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	dir  string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.cert, a.key = a.sign(t, "authority", &x509.Certificate{IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign})
	return a
}

// file is where something of that name is.
func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) sign(t *testing.T, name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template.SerialNumber, template.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	secret, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	for file, block := range map[string]*pem.Block{
		name + ".crt": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "EC PRIVATE KEY", Bytes: secret},
	} {
		// As a volume of a Secret does: the file is replaced, never half written.
		require.NoError(t, os.WriteFile(a.file(file+".new"), pem.EncodeToMemory(block), 0o600))
		require.NoError(t, os.Rename(a.file(file+".new"), a.file(file)))
	}
	return cert, key
}

func (a *authority) leaf(t *testing.T, name string) *x509.Certificate {
	t.Helper()
	cert, _ := a.sign(t, name, &x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	return cert
}

func TestOnlyCallersWithACertificateAreAnswered(t *testing.T) {
	t.Parallel()
	h, nodes := newWorld(t)
	ours, theirs := newAuthority(t), newAuthority(t)
	ours.leaf(t, "server")
	ours.leaf(t, "scheduler")
	ours.leaf(t, "kubelet")
	theirs.leaf(t, "scheduler")
	address := h.serve(t, Serving{
		CertFile: ours.file("server.crt"), KeyFile: ours.file("server.key"), ClientCAFile: ours.file("authority.crt"),
		ClientNames: []string{"scheduler"},
	})
	for name, tc := range map[string]struct {
		client *authority
		name   string
		want   string
	}{
		"a scheduler of the authority": {ours, "scheduler", ""},
		"another of the authority":     {ours, "kubelet", "code 403"},
		// How the end of the connection shows to the client depends on how much it has sent by then.
		"a scheduler of another": {theirs, "scheduler", "/filter"},
		"a scheduler without":    {nil, "", "code 401"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := caller(t, address, func(c *schedulerconfig.Extender) {
				c.URLPrefix, c.EnableHTTPS = "https://"+address, true
				c.TLSConfig = &schedulerconfig.ExtenderTLSConfig{CAFile: ours.file("authority.crt")}
				if tc.client != nil {
					c.TLSConfig.CertFile, c.TLSConfig.KeyFile = tc.client.file(tc.name+".crt"), tc.client.file(tc.name+".key")
				}
			})
			passed, _, _, err := client.Filter(newPod("new", "", 1, nil), infos(nodes...))
			if tc.want == "" && (err != nil || len(passed) != 3) {
				t.Errorf("passed %v, error %v", namesOf(passed), err)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
	plain := caller(t, address, nil)
	if _, _, _, err := plain.Filter(newPod("new", "", 1, nil), infos(nodes...)); err == nil {
		t.Error("a caller without TLS is answered")
	}
}

func TestANewCertificateIsUsedWithoutARestart(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	a := newAuthority(t)
	a.leaf(t, "server")
	address := h.serve(t, Serving{CertFile: a.file("server.crt"), KeyFile: a.file("server.key")})
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	next := a.leaf(t, "server")
	await.Until(t, "the new certificate", func() bool {
		conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: roots})
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Cmp(next.SerialNumber) == 0
	})
}

// The authority of the callers is replaced, and before that by a file that cannot be used.
func TestANewAuthorityOfCallersIsUsedWithoutARestart(t *testing.T) {
	t.Parallel()
	h, nodes := newWorld(t)
	server, before, after := newAuthority(t), newAuthority(t), newAuthority(t)
	server.leaf(t, "server")
	before.leaf(t, "scheduler")
	after.leaf(t, "scheduler")
	trusted := filepath.Join(t.TempDir(), "ca.crt")
	trust := func(content []byte) {
		require.NoError(t, os.WriteFile(trusted+".new", content, 0o600))
		require.NoError(t, os.Rename(trusted+".new", trusted))
	}
	content := func(a *authority) []byte {
		b, err := os.ReadFile(a.file("authority.crt"))
		require.NoError(t, err)
		return b
	}
	trust(content(before))
	address := h.serve(t, Serving{CertFile: server.file("server.crt"), KeyFile: server.file("server.key"),
		ClientCAFile: trusted})
	answers := func(client *authority) bool {
		// A caller of its own for each request: what was verified for a connection is true as long as that lasts.
		_, _, _, err := caller(t, address, func(c *schedulerconfig.Extender) {
			c.URLPrefix, c.EnableHTTPS = "https://"+address, true
			c.TLSConfig = &schedulerconfig.ExtenderTLSConfig{
				CAFile: server.file("authority.crt"), CertFile: client.file("scheduler.crt"), KeyFile: client.file("scheduler.key"),
			}
		}).Filter(newPod("new", "", 1, nil), infos(nodes...))
		return err == nil
	}
	if !answers(before) || answers(after) {
		t.Fatal("want an answer to the callers of the first authority alone")
	}
	trust([]byte("half a file"))
	trust(content(after))
	await.Until(t, "the new authority", func() bool { return answers(after) })
	if answers(before) {
		t.Error("a caller of the authority before is answered")
	}
}

func TestCertificatesThatCannotBeUsedEndTheStart(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	a := newAuthority(t)
	a.leaf(t, "server")
	a.leaf(t, "other")
	for name, s := range map[string]Serving{
		"no file":                      {CertFile: a.file("none"), KeyFile: a.file("server.key")},
		"a key of another certificate": {CertFile: a.file("server.crt"), KeyFile: a.file("other.key")},
		"authorities that are none": {CertFile: a.file("server.crt"), KeyFile: a.file("server.key"),
			ClientCAFile: a.file("server.key")},
	} {
		s.Address = "127.0.0.1:0"
		if _, err := NewServer(h.Extender, s); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
