package signals

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/test/harness/require"
)

// serve starts a server that answers every query with handler, and returns a client for it.
func serve(t *testing.T, handler http.HandlerFunc, change func(*config.Prometheus)) *client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	args := gpuArgs(server.URL).Prometheus
	if change != nil {
		change(&args)
	}
	c, err := newClient(&args)
	if err != nil {
		t.Fatalf("making the client: %v", err)
	}
	t.Cleanup(c.connections.CloseIdleConnections)
	return c
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// oversized answers with more than a client reads.
func oversized(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		for range maxAnswerBytes>>20 + 1 {
			_, _ = io.WriteString(w, strings.Repeat(" ", 1<<20))
		}
	}
}

func writeFile(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatalf("writing a file: %v", err)
	}
	return path
}

const emptyVector = `{"status":"success","data":{"resultType":"vector","result":[]}}`

func TestAnswersThatAreNoVector(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		handler http.HandlerFunc
		change  func(*config.Prometheus)
		// want is a part of the error.
		want string
	}{
		"a page of HTML":                  {handler: answer(200, "<html>log in</html>"), want: "bad_response"},
		"nothing":                         {handler: answer(200, ""), want: "bad_response"},
		"half an answer":                  {handler: answer(200, emptyVector[:40]), want: "bad_response"},
		"another type of result":          {handler: answer(200, `{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`), want: "want a vector of samples, got *model.Scalar"},
		"an unknown type of result":       {handler: answer(200, `{"status":"success","data":{"resultType":"table","result":[]}}`), want: `unknown value type "table"`},
		"success without data":            {handler: answer(200, `{"status":"success"}`), want: "do not know how to skip"},
		"a value that is no number":       {handler: answer(200, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"x"]}]}}`), want: `parsing "x"`},
		"null in place of a sample":       {handler: answer(200, `{"status":"success","data":{"resultType":"vector","result":[null]}}`), want: "want a vector of samples"},
		"an error of the query":           {handler: answer(422, `{"status":"error","errorType":"execution","error":"too many samples"}`), want: "execution: too many samples"},
		"an error of endless length":      {handler: answer(422, `{"status":"error","errorType":"execution","error":"`+strings.Repeat("ä", 1<<20)+`"}`), want: "ä…"},
		"an error of the server":          {handler: answer(500, "boom"), want: "500"},
		"a lack of rights":                {handler: answer(401, "who are you"), want: "401"},
		"a redirect to a login page":      {handler: http.RedirectHandler("/login", http.StatusFound).ServeHTTP, want: "302"},
		"more than the bound":             {handler: oversized(http.StatusOK), want: "larger than 64 MiB"},
		"more than the bound in an error": {handler: oversized(http.StatusInternalServerError), want: "larger than 64 MiB"},
		"headers but no end of the body": {handler: func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, emptyVector[:20])
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, want: "no answer within 100ms",
			change: func(p *config.Prometheus) { p.Timeout = &metav1.Duration{Duration: 100 * time.Millisecond} }},
		"a token file that is not there": {handler: answer(200, emptyVector), want: "unable to read",
			change: func(p *config.Prometheus) { p.BearerTokenFile = filepath.Join(t.TempDir(), "absent") }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := serve(t, c.handler, c.change).query(t.Context(), "up", model.ValVector, time.Minute)
			if err == nil {
				t.Fatal("no error")
			}
			if len(err.Error()) > maxErrorBytes+100 {
				t.Errorf("error of %d bytes", len(err.Error()))
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q, want one with %q", err, c.want)
			}
		})
	}
}

func TestCredentialsAreSentAndReadAnew(t *testing.T) {
	t.Parallel()
	token := writeFile(t, t.TempDir(), "token", "first\n")
	want := "Bearer first"
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != want {
			answer(http.StatusUnauthorized, fmt.Sprintf("got %q", got))(w, r)
			return
		}
		answer(200, emptyVector)(w, r)
	}, func(p *config.Prometheus) { p.BearerTokenFile = token })
	if _, err := c.query(t.Context(), "up", model.ValVector, time.Minute); err != nil {
		t.Fatalf("with the first token: %v", err)
	}
	require.NoError(t, os.WriteFile(token, []byte("second"), 0o600))
	want = "Bearer second"
	if _, err := c.query(t.Context(), "up", model.ValVector, time.Minute); err != nil {
		t.Errorf("after the token's rotation: %v", err)
	}
}

func TestQueriesCarryTheirBounds(t *testing.T) {
	t.Parallel()
	var form map[string][]string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		form = r.Form
		answer(200, emptyVector)(w, r)
	}, nil)
	if _, err := c.query(t.Context(), "up", model.ValVector, 3*time.Minute); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"query": "up", "timeout": "10s", "lookback_delta": "3m0s", "time": ""} {
		got := ""
		if len(form[key]) > 0 {
			got = form[key][0]
		}
		if got != want {
			t.Errorf("parameter %s: %q, want %q", key, got, want)
		}
	}
}

func TestFilesThatCannotBeReadStopTheStart(t *testing.T) {
	t.Parallel()
	args := gpuArgs("https://127.0.0.1:1")
	args.Prometheus.TLS = &config.PrometheusTLS{CAFile: filepath.Join(t.TempDir(), "absent")}
	r, err := StartGPU(t.Context(), newFactory(), args, func() []Node { return nil }, known)
	if err == nil || !strings.Contains(err.Error(), "absent") || strings.Contains(err.Error(), "\n") {
		t.Errorf("reader %v, error %v, want a line that names the file", r, err)
	}
}
