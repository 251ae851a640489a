package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"berth.dev/berth/pkg/nodeagent/nvidiasmitest"
	"berth.dev/berth/pkg/screen/command"
	"berth.dev/berth/test/harness/await"
	"berth.dev/berth/test/harness/require"
)

func TestMain(m *testing.M) {
	command.DropLinkedFlags()
	// The tests run several commands in one process; each sets up logging in the same way. It is done before them, as
	// it is not made to be done while others log.
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	if err := logsapi.ValidateAndApply(logsapi.NewLoggingConfiguration(), nil); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestFlagsThatCannotBeUsedAreRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no node": {[]string{"--node-name="}, "--node-name is not given"},
		"an interval of nothing": {[]string{"--node-name=n", "--interval=1ms"},
			"--interval is 1ms and --nvidia-smi-timeout 20s: want at least 1s"},
		"an argument":               {[]string{"n"}, "unknown command"},
		"an unknown format of logs": {[]string{"--node-name=n", "--logging-format=xml"}, "setting up logs"},
		"an address of another machine": {[]string{"--node-name=n", "--listen=192.0.2.1:1", "--kubeconfig=" +
			kubeconfig(t, "http://127.0.0.1:1")}, "listening for requests"},
		"a kubeconfig that is not": {[]string{"--node-name=n", "--kubeconfig=/nowhere"},
			"reading how to reach the API server"},
		"an address that is no address": {[]string{"--node-name=n", "--listen=here"}, `--listen is "here": want an address such as 127.0.0.1:9410`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := newCommand()
			cmd.SetArgs(tc.args)
			cmd.SetOut(io.Discard)
			var said strings.Builder
			if status := command.Run(cmd, &said); status != command.StatusBadInput || !strings.Contains(said.String(), tc.want) {
				t.Errorf("exit status %d, it says %q, want 2 and %q", status, said.String(), tc.want)
			}
		})
	}
}

// kubeconfig writes one for a server without credentials.
func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c}}]}`, server)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// nodeServer is an API server with one node that takes merge patches of annotations.
type nodeServer struct {
	mu   sync.Mutex
	node corev1.Node
}

func (s *nodeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasSuffix(r.URL.Path, "reviews") {
		s.review(w, r)
		return
	}
	if r.URL.Path != "/api/v1/nodes/gpu-1" {
		http.NotFound(w, r)
		return
	}
	if r.Method == http.MethodPatch {
		if err := json.NewDecoder(r.Body).Decode(&s.node); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(&s.node)
}

// review knows one token, whose owner may get everything.
func (*nodeServer) review(w http.ResponseWriter, r *http.Request) {
	asked, err := io.ReadAll(r.Body) // in an encoding of the client's choice
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	if strings.HasSuffix(r.URL.Path, "tokenreviews") {
		review := authenticationv1.TokenReview{TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1",
			Kind: "TokenReview"}}
		review.Status.Authenticated = bytes.Contains(asked, []byte("reader"))
		_ = json.NewEncoder(w).Encode(&review)
		return
	}
	review := authorizationv1.SubjectAccessReview{TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1",
		Kind: "SubjectAccessReview"}}
	review.Status.Allowed = bytes.Contains(asked, []byte("/metrics"))
	_ = json.NewEncoder(w).Encode(&review)
}

func (s *nodeServer) annotations() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.node.Annotations) // the next patch changes them in place
}

func TestTheCommandPublishesServesAndStops(t *testing.T) {
	t.Parallel()
	tool := nvidiasmitest.Program(t, `printf '\tGPU0\tGPU1\nGPU0\t X \tNV12\nGPU1\tNV12\t X \n'`)
	api := &nodeServer{node: corev1.Node{TypeMeta: metav1.TypeMeta{Kind: "Node", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "gpu-1"}}}
	apiServer := httptest.NewServer(api)
	t.Cleanup(apiServer.Close)
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))

	cmd := newCommand()
	cmd.SetArgs([]string{"--node-name=gpu-1", "--kubeconfig=" + kubeconfig(t, apiServer.URL), "--nvidia-smi=" + tool,
		"--listen=127.0.0.1:0"})
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	var address string
	await.Until(t, "the address in the log", func() bool {
		found := regexp.MustCompile(`listening="(127\.0\.0\.1:[1-9]\d*)"`).FindStringSubmatch(logger.GetSink().(ktesting.Underlier).GetBuffer().String())
		if found != nil {
			address = found[1]
		}
		return address != ""
	})
	want := map[string]string{"berth.dev/gpu-links": `{"links":[[0,1,"NV12"]]}`}
	await.Until(t, "the annotation", func() bool { return maps.Equal(api.annotations(), want) })
	if body := get(t, "https://"+address+"/healthz", ""); body != "ok\n" {
		t.Errorf("/healthz answers %q", body)
	}
	await.Until(t, "the metrics", func() bool {
		body := get(t, "https://"+address+"/metrics", "reader")
		return strings.Contains(body, `berth_node_agent_writes_total{result="done"} 1`)
	})
	if body := get(t, "https://"+address+"/metrics", ""); !strings.HasPrefix(body, "want the header Authorization") {
		t.Errorf("without a token /metrics answers %q", body)
	}
	cancel()
	if err := await.Next(t, done, "the end of the command"); err != nil {
		t.Errorf("after the end: %v", err)
	}
	if !maps.Equal(api.annotations(), want) {
		t.Errorf("annotations after the end: %v, want them to stay", api.annotations())
	}
}

// get trusts the certificate, which the agent has made itself.
func get(t *testing.T, url, token string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	//nolint:forbidigo // the agent makes its certificate itself, and no one can know its authority
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	answer, err := client.Do(request)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(body)
}
