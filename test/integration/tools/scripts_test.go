package tools_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/client-go/tools/clientcmd"

	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/scripts"
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

func TestScripts(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"curl", "python3"} {
		box.Installed(t, program, program)
	}
	scripts.Run(t, "testdata", map[string]func(*testscript.TestScript, bool, []string){"trusted": trusted})
}

// trusted KUBECONFIG lets clients that are built on OpenSSL ask the API server of a kubeconfig with what it holds.
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
	byName := strings.Replace(config.Host, "127.0.0.1", "localhost", 1)
	for _, client := range [][]string{
		{"curl", "--noproxy", "*", "--silent", "--show-error", "--max-time", "60", "--cacert", ca, "--cert", cert, "--key",
			key, byName + "/readyz"},
		{"curl", "--noproxy", "*", "--silent", "--show-error", "--max-time", "60", "--cacert", ca, "--cert", cert, "--key",
			key, config.Host + "/readyz"},
		{"python3", "-c", pythonClient, config.Host + "/readyz", ca, cert, key},
	} {
		out, err := exec.Command(client[0], client[1:]...).CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "ok" {
			ts.Fatalf("%s: %v: %s", client[0], err, out)
		}
	}
}
