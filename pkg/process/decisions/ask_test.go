package decisions

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"berth.dev/berth/test/harness/require"
)

//nolint:tparallel // the parts share a server that counts
func TestTheSchedulerIsReachedOnlyWhenItsCertificateIsVerified(t *testing.T) {
	t.Parallel()
	var served atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		served.Add(1)
		if _, err := w.Write([]byte(`{"` + Name + `": {}}`)); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	server.Config.ErrorLog = nil
	address := server.Listener.Addr().String()
	_, port, _ := strings.Cut(address, ":")
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		return path
	}
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, test := range map[string]struct {
		api        rest.Config
		host, file string
		want       string
	}{
		"the certificate is in the file": {host: address, file: file("own.crt", own)},
		"a kubeconfig that verifies nothing does not count": {
			api: rest.Config{TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, host: address, want: "--scheduler-ca",
		},
		"a kubeconfig with another name of the API server": {
			api: rest.Config{TLSClientConfig: rest.TLSClientConfig{ServerName: "api.invalid"}}, host: address,
			file: file("name.crt", own),
		},
		"the kubeconfig's authority is the scheduler's": {
			api: rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: own}}, host: address},
		"the file comes before the kubeconfig": {
			api: rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: "/nonexistent"}}, host: address,
			file: file("before.crt", own)},
		"no authority": {host: address, want: "--scheduler-ca"},
		"a name that the certificate is not for": {host: "localhost:" + port, file: file("other.crt", own),
			want: "not localhost"},
		"no file": {host: address, file: filepath.Join(dir, "absent"), want: "no such file"},
		"a file of something else": {host: address, file: file("else.crt", []byte("x")),
			want: "unable to load root certificates"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Ask(t.Context(), Reach(&test.api, test.host, test.file))
			requests := served.Swap(0)
			if test.want == "" {
				if err != nil || requests != 1 {
					t.Errorf("%v, %d requests, want 1", err, requests)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || requests != 0 {
				t.Errorf("error %v, %d requests, want %q and none", err, requests, test.want)
			}
		})
	}
}
