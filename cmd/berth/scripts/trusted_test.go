package scripts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/client-go/tools/clientcmd"
)

// pythonClient reads a page with an authority, a certificate and a key, as strictly as its OpenSSL can.
const pythonClient = `
import ssl, sys, urllib.request
url, ca, cert, key = sys.argv[1:]
context = ssl.create_default_context(cafile=ca)
context.verify_flags |= getattr(ssl, "VERIFY_X509_STRICT", 0)
context.load_cert_chain(cert, key)
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
print(opener.open(url, timeout=60).read().decode())
`

// trusted KUBECONFIG lets clients that are built on OpenSSL ask the API server of a kubeconfig with what it holds. Those that are
// not installed are left out, with a word in the log.
func trusted(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: trusted KUBECONFIG")
	}
	config, err := clientcmd.BuildConfigFromFlags("", ts.MkAbs(args[0]))
	ts.Check(err)
	dir, err := os.MkdirTemp(ts.Getenv("TMPDIR"), "trusted-")
	ts.Check(err)
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		ts.Check(os.WriteFile(path, content, 0o600))
		return path
	}
	ca, cert, key := file("ca", config.CAData), file("cert", config.CertData), file("key", config.KeyData)
	for _, client := range [][]string{
		{"curl", "--noproxy", "*", "--silent", "--show-error", "--max-time", "60", "--cacert", ca, "--cert", cert, "--key", key, config.Host + "/readyz"},
		{"python3", "-c", pythonClient, config.Host + "/readyz", ca, cert, key},
	} {
		path, err := exec.LookPath(client[0])
		if err != nil {
			ts.Logf("%s is not installed, so it is not known whether it trusts the server", client[0])
			continue
		}
		out, err := exec.Command(path, client[1:]...).CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "ok" {
			ts.Fatalf("%s: %v: %s", client[0], err, out)
		}
	}
}
