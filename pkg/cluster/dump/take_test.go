package dump

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"

	"berth.dev/berth/pkg/cluster/inputs"
	"berth.dev/berth/test/harness/require"
)

// apiServer answers with what is given for a path, and as one that does not serve it for others.
func apiServer(t *testing.T, changed map[string]http.HandlerFunc) *inputs.Reader {
	t.Helper()
	answers := map[string]string{
		"/version": `{"gitVersion":"v1.37.1"}`,
		"/api":     `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis":    `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`,
		"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"nodes","kind":"Node","verbs":["list"]},` +
			`{"name":"pods","kind":"Pod","namespaced":true,"verbs":["list"]}]}`,
		"/api/v1/nodes": `{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"n"}}]}`,
		"/api/v1/pods":  `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"p","namespace":"research"}}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if handler := changed[r.URL.Path]; handler != nil {
			handler(w, r)
			return
		}
		answer, found := answers[r.URL.Path]
		if !found {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	reader, err := inputs.NewReader(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	return reader
}

func TestADumpOfAClusterReplacesTheFileWhenItIsComplete(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cluster.dump")
	require.NoError(t, os.WriteFile(path, []byte("before"), 0o600))
	taken, err := TakeFile(t.Context(), apiServer(t, nil), path, nil)
	require.NoError(t, err)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	read, err := Read(bytes.NewReader(data), path)
	require.NoError(t, err)
	if len(read.Objects) != 2 || taken.Objects != 2 || taken.Bytes != int64(len(data)) || read.Kubernetes != "v1.37.1" {
		t.Errorf("%+v, %d objects, header %+v; want a node and a pod of v1.37.1 in %d bytes", taken, len(read.Objects),
			read.Header, len(data))
	}
	if left := strings.Join(taken.LeftOut, "\n"); !strings.Contains(left, "does not serve it") {
		t.Errorf("left out:\n%s\nwant the kinds that the server does not serve", left)
	}
}

func TestADumpGoesIntoAPipeThatStays(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	type content struct {
		data []byte
		err  error
	}
	read := make(chan content, 1)
	go func() {
		data, err := os.ReadFile(pipe)
		read <- content{data, err}
	}()
	taken, err := TakeFile(t.Context(), apiServer(t, nil), pipe, nil)
	require.NoError(t, err)
	got := <-read
	if got.err != nil {
		t.Fatal(got.err)
	}
	if dumped, err := Read(bytes.NewReader(got.data), "pipe"); err != nil || len(dumped.Objects) != 2 ||
		taken.Objects != 2 {
		t.Errorf("%+v, %v, %v; want a node and a pod", taken, dumped, err)
	}
	if info, err := os.Stat(pipe); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("%v, %v; want the pipe", info, err)
	}
}

func TestNamesAreHashedInADumpThatIsAskedForIt(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if _, err := Take(t.Context(), apiServer(t, nil), &out, usualKeys()); err != nil {
		t.Fatal(err)
	}
	read, err := Read(&out, "f")
	require.NoError(t, err)
	if !read.NamesHashed {
		t.Error("the header does not say that names are hashed")
	}
	for _, object := range read.Objects {
		named, ok := object.(interface{ GetName() string })
		if !ok || named.GetName() == "n" || named.GetName() == "p" {
			t.Errorf("the name is there: %v", object)
		}
	}
}

func TestADumpThatIsNotCompleteLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		path  string
		hangs bool
		want  string
	}{
		"a list that fails":                    {"/api/v1/pods", false, "listing pods"},
		"a server that never says who it is":   {"/version", true, context.Canceled.Error()},
		"a server that never says what it has": {"/api", true, context.Canceled.Error()},
		"a list that never comes":              {"/api/v1/nodes", true, context.Canceled.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan struct{}, 8)
			handler := func(w http.ResponseWriter, r *http.Request) {
				asked <- struct{}{}
				if test.hangs {
					<-r.Context().Done()
					return
				}
				http.Error(w, "no", http.StatusBadRequest)
			}
			dir := t.TempDir()
			path := filepath.Join(dir, "cluster.dump")
			require.NoError(t, os.WriteFile(path, []byte("before"), 0o600))
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-asked
				if test.hangs {
					cancel()
				}
			}()
			_, err := TakeFile(ctx, apiServer(t, map[string]http.HandlerFunc{test.path: handler}), path, nil)
			cancel()
			if err == nil || !strings.Contains(err.Error(), test.want) && !errors.Is(err, context.Canceled) {
				t.Errorf("error %v, want %q", err, test.want)
			}
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) != 1 {
				t.Errorf("left in the folder: %v (%v)", entries, err)
			}
			if content, err := os.ReadFile(path); err != nil || string(content) != "before" {
				t.Errorf("the file is %q (%v), want it as before", content, err)
			}
		})
	}
}
