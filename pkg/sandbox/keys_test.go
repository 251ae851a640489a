package sandbox

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"berth.dev/berth/test/harness/leak"
	"berth.dev/berth/test/harness/require"
)

func TestMain(m *testing.M) { leak.Main(m) }

func parse(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	block, _ := pem.Decode(data)
	cert, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return cert
}

func TestEveryCertificateHasASubjectOfItsOwn(t *testing.T) {
	t.Parallel()
	keys := Keys(t.TempDir())
	require.NoError(t, keys.Make())
	ca := parse(t, keys.Cert(KeyCA))
	proxies := parse(t, keys.Cert(KeyFrontProxyCA))
	seen := map[string]string{ca.Subject.String(): KeyCA}
	if ca.Subject.String() == proxies.Subject.String() {
		t.Errorf("both authorities have the subject %s", ca.Subject)
	}
	for _, name := range []string{KeyServer, KeyEtcdClient, KeyAdmin, KeyScheduler} {
		cert := parse(t, keys.Cert(name))
		if other, found := seen[cert.Subject.String()]; found {
			t.Errorf("%s and %s have the same subject %s", name, other, cert.Subject)
		}
		seen[cert.Subject.String()] = name
		if err := cert.CheckSignatureFrom(ca); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := cert.CheckSignatureFrom(proxies); err == nil {
			t.Errorf("%s is signed by the authority of proxies", name)
		}
	}
}

// serve answers on loopback with the server's certificate and asks clients for theirs, as the API server does.
func serve(t *testing.T, keys Keys) (url string) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(keys.Cert(KeyServer), keys.Key(KeyServer))
	require.NoError(t, err)
	authorities := x509.NewCertPool()
	authorities.AddCert(parse(t, keys.Cert(KeyCA)))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("hello " + r.TLS.PeerCertificates[0].Subject.CommonName))
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: authorities,
		ClientAuth: tls.RequireAndVerifyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

func TestClientsTrustTheKubeconfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys := Keys(filepath.Join(dir, "pki"))
	require.NoError(t, keys.Make())
	url := serve(t, keys)
	kubeconfig := filepath.Join(dir, "kubeconfig")
	require.NoError(t, keys.WriteKubeconfig(kubeconfig, url, KeyAdmin))
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	for _, name := range []string{url, strings.Replace(url, "127.0.0.1", "localhost", 1)} {
		response, err := client.Get(name)
		if err != nil {
			t.Errorf("asking %s: %v", name, err)
			continue
		}
		said, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || string(said) != "hello berth-admin" {
			t.Errorf("%s says %q (%v), want %q", name, said, err, "hello berth-admin")
		}
	}
}
