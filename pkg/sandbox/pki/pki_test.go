package pki_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"berth.dev/berth/pkg/sandbox/pki"
)

func parse(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestEveryCertificateHasASubjectOfItsOwn(t *testing.T) {
	t.Parallel()
	keys, err := pki.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ca := parse(t, keys.Cert(pki.CA))
	proxies := parse(t, keys.Cert(pki.FrontProxyCA))
	seen := map[string]string{ca.Subject.String(): pki.CA}
	if ca.Subject.String() == proxies.Subject.String() {
		t.Errorf("both authorities have the subject %s", ca.Subject)
	}
	for _, name := range []string{pki.Server, pki.EtcdClient, pki.Admin, pki.Scheduler} {
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
func serve(t *testing.T, keys pki.Dir) (url string) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(keys.Cert(pki.Server), keys.Key(pki.Server))
	if err != nil {
		t.Fatal(err)
	}
	authorities := x509.NewCertPool()
	authorities.AddCert(parse(t, keys.Cert(pki.CA)))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("hello " + r.TLS.PeerCertificates[0].Subject.CommonName))
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: authorities, ClientAuth: tls.RequireAndVerifyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

// pythonClient asks with the authority, the certificate and the key that it is given, as strictly as its OpenSSL can.
const pythonClient = `
import ssl, sys, urllib.request
url, ca, cert, key = sys.argv[1:]
context = ssl.create_default_context(cafile=ca)
context.verify_flags |= getattr(ssl, "VERIFY_X509_STRICT", 0)
context.load_cert_chain(cert, key)
print(urllib.request.urlopen(url, context=context, timeout=30).read().decode())
`

func TestClientsOnOpenSSLTrustTheKubeconfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys, err := pki.New(filepath.Join(dir, "pki"))
	if err != nil {
		t.Fatal(err)
	}
	url := serve(t, keys)
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := keys.WriteKubeconfig(kubeconfig, url, pki.Admin); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca, cert, key := file("ca", config.CAData), file("cert", config.CertData), file("key", config.KeyData)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	for name, client := range map[string][]string{
		"curl":                     {"curl", "--silent", "--show-error", "--max-time", "30", "--cacert", ca, "--cert", cert, "--key", key, url},
		"curl by the host's name":  {"curl", "--silent", "--show-error", "--max-time", "30", "--cacert", ca, "--cert", cert, "--key", key, "https://localhost:" + port},
		"the ssl module of Python": {"python3", "-c", pythonClient, url, ca, cert, key},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(client[0]); err != nil {
				t.Skipf("%s is not installed: %v", client[0], err)
			}
			cmd := exec.CommandContext(t.Context(), client[0], client[1:]...)
			// Proxies of the environment are not for loopback.
			cmd.Env = append(os.Environ(), "NO_PROXY=*", "no_proxy=*")
			output, err := cmd.CombinedOutput()
			if err != nil || strings.TrimSpace(string(output)) != "hello berth-admin" {
				t.Errorf("error %v, output %q; want %q", err, output, "hello berth-admin")
			}
		})
	}
}
